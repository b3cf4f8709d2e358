// hfta-tune simulate --planner

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/number_option.hpp"
#include "engine/cli/output.hpp"
#include "engine/planner/nets.hpp"
#include "engine/planner/search.hpp"

namespace hfta::engine {
namespace {

constexpr int kGroups = 32;

struct Row {
  std::optional<planner::Candidate> best;  ///< The fastest data parallel plan that fits.
  planner::Outcome planned;
  double least = 0;  ///< Problem::least_seconds()
};

Row row_of(const planner::Graph& graph, const planner::Cluster& cluster, const planner::Effort& effort) {
  const planner::Problem problem(graph, cluster, planner::groups_of(graph, kGroups));
  planner::Found found = planner::search(problem, effort);
  Row row;
  row.planned = found.outcome;
  row.least = problem.least_seconds();
  for (std::size_t i = 0; i < found.baselines.size(); ++i) {
    const planner::Candidate& one = found.baselines[i];
    if (problem.actions()[i].sharing == planner::Sharing::kOne || !one.outcome.feasible()) continue;
    if (!row.best || one.outcome.seconds < row.best->outcome.seconds) row.best = one;
  }
  return row;
}

std::string text_of(const planner::PaperRow& paper, const Row& row) {
  const bool ran = paper.ev_ps > 0;
  const double best = std::min({paper.ev_ps, paper.ev_ar, paper.cp_ps, paper.cp_ar});
  const std::string published = ran ? fmt::format("{:.3f} / {:.3f} = {:.2f}", best, paper.heterog, best / paper.heterog)
                                    : fmt::format("OOM / {:.3f}", paper.heterog);
  const std::string planned = row.planned.feasible() ? fmt::format("{:.3f}", row.planned.seconds) : "OOM";
  if (!row.best)
    return fmt::format("{:<19} {:<9} {:>7} {:>8} {:>7} {:>7}   {}\n", paper.net, "none fits", "OOM", planned, "", "",
                       published);
  const double seconds = row.best->outcome.seconds;
  return fmt::format("{:<19} {:<9} {:>7.3f} {:>8} {:>7.3f} {:>7.3f}   {}\n", paper.net, row.best->name, seconds,
                     planned, seconds / row.planned.seconds, seconds / row.least, published);
}

}  // namespace

void add_planner_options(boost::program_options::options_description& options) {
  options.add_options()("planner", "no study, but plans of HeteroG's nets on its eight GPUs, beside its own figures")(
      "simulations", boost::program_options::value<int>()->value_name("N"),
      "with --planner: plans that are tried for each net, 3000 unless told");
}

int simulate_planner(const Arguments& arguments) {
  if (arguments.has("CONFIG.yaml")) throw Error(ErrorKind::kConfig, "found a config beside --planner, wanted none");
  planner::Effort effort;
  effort.simulations = number_option(arguments, "simulations", effort.simulations, 1, planner::kMostSimulations);
  effort.seed = static_cast<std::uint64_t>(number_option<std::int64_t>(arguments, "seed", 0, 0, std::int64_t{1} << 53));
  const planner::Cluster cluster = planner::paper_cluster();
  print(fmt::format(
      "{}; seconds of a step, simulated; gain: the best data parallel plan's over the planned one's; most:\n"
      "what the gain could be if nothing had to travel; on the right HeteroG's table 1, measured\n\n"
      "{:<19} {:<9} {:>7} {:>8} {:>7} {:>7}   {}\n",
      cluster.links.name(), "net:samples", "best DP", "s", "planned", "gain", "most", "best DP / HeteroG"));
  double logs = 0;
  int gains = 0;
  for (const planner::PaperRow& paper : planner::paper_rows()) {
    const Row row = row_of(planner::net_named(paper.net), cluster, effort);
    print(text_of(paper, row));
    if (!row.best || paper.ev_ps == 0) continue;
    logs += std::log(row.best->outcome.seconds / row.planned.seconds);
    ++gains;
  }
  if (gains > 0) print(fmt::format("geometric mean of the gains of the first eight: {:.3f}\n", std::exp(logs / gains)));
  return 0;
}

}  // namespace hfta::engine
