// hfta-tune plan --cluster

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/number_option.hpp"
#include "engine/cli/output.hpp"
#include "engine/planner/plan_text.hpp"
#include "engine/planner/readers.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

constexpr int kGroups = 32;  // default of --groups

planner::Graph graph_from(const Arguments& arguments) {
  const auto file = arguments.get<std::string>("graph");
  if (!file) throw Error(ErrorKind::kConfig, "found --cluster without --graph, wanted a file of ops");
  return planner::graph_named(*file);
}

}  // namespace

void add_cluster_options(po::options_description& options) {
  options.add_options()("cluster", po::value<std::string>()->value_name("FILE|heterog-8"),
                        "no study, but one training step on several devices: which does what")(
      "graph", po::value<std::string>()->value_name("FILE|NET"),
      "with --cluster: the ops and what they cost, YAML or JSON")(
      "groups", po::value<int>()->value_name("N"),
      "with --cluster: groups of ops that get one action each, 32 unless told")(
      "simulations", po::value<int>()->value_name("N"), "with --cluster: plans that are tried, 3000 unless told")(
      "seed", po::value<std::int64_t>()->value_name("S"), "with --cluster: of the search, 0 unless told")(
      "output", po::value<std::string>()->value_name("FILE"), "with --cluster: writes the plan, JSON")(
      "trace", po::value<std::string>()->value_name("FILE"),
      "with --cluster: writes the planned step as a Chrome trace");
}

int plan_on_cluster(const Arguments& arguments) {
  if (arguments.has("CONFIG.yaml")) throw Error(ErrorKind::kConfig, "found a config beside --cluster, wanted none");
  const planner::Cluster cluster = planner::cluster_named(arguments.required("cluster"));
  const planner::Graph graph = graph_from(arguments);
  planner::Effort effort;
  effort.seed = static_cast<std::uint64_t>(number_option<std::int64_t>(arguments, "seed", 0, 0, std::int64_t{1} << 53));
  effort.simulations = number_option(arguments, "simulations", effort.simulations, 1, planner::kMostSimulations);
  const int groups = number_option(arguments, "groups", kGroups, 1, planner::kMostOps);
  const planner::Problem problem(graph, cluster, planner::groups_of(graph, groups));
  const planner::Found found = planner::search(problem, effort);
  if (const auto file = arguments.get<std::string>("output"))
    print_to(*file, planner::plan_json(problem, found, effort));
  if (const auto file = arguments.get<std::string>("trace"))
    print_to(*file, planner::plan_trace(problem, found.choices));
  const bool json =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "json"}) == "json";
  print(json ? planner::plan_json(problem, found, effort) : planner::plan_table(problem, found));
  return 0;
}

}  // namespace hfta::engine
