// hfta-tune simulate --allocation

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/allocation/simulation.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/number_option.hpp"
#include "engine/cli/output.hpp"
#include "engine/topology/machines.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

constexpr int kJobs = 300;  // jobs of a drawn queue, as in MAPA's evaluation

Bandwidth bandwidth_from(const Arguments& arguments) {
  const std::string word =
      one_of("--bandwidth", arguments.get<std::string>("bandwidth").value_or("mapa"), {"mapa", "rings"});
  return word == "mapa" ? Bandwidth::kMapa : Bandwidth::kRings;
}

std::vector<Job> jobs_of_file(const std::string& file, int machine, const Communication& communication) {
  std::vector<std::byte> bytes;
  try {
    bytes = SystemFiles().read(file, kMostBytesOfJobs);
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: cannot be read: {}", printable(file), error.what()));
  }
  return read_jobs({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file, machine, communication);
}

std::vector<std::vector<Job>> queues_from(const Arguments& arguments, int machine) {
  const double sensitive = number_option(arguments, "communication", 0.1, 0.0, 1.0);
  const Communication communication{sensitive, std::min(sensitive, Communication().others)};
  if (const auto file = arguments.get<std::string>("jobs")) return {jobs_of_file(*file, machine, communication)};
  const auto seed = number_option<std::int64_t>(arguments, "seed", 0, 0, std::int64_t{1} << 53);
  const int count = number_option(arguments, "queues", 8, 1, 1000);
  std::vector<std::vector<Job>> queues;
  queues.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    queues.push_back(paper_mix(static_cast<std::uint64_t>(seed + i), kJobs, machine, communication));
  }
  return queues;
}

std::string row(const PolicyKind& kind, const Summary& all, const Summary& base) {
  return fmt::format("{:<11} {:>7.4f} {:>7.3f} {:>7.3f} {:>7.3f} {:>7.3f} {:>11.3f} {:>8.3f} {:>7.3f} {:>7.3f}\n",
                     kind.name, all.mean, all.third_quartile, all.ninetieth, all.ninety_fifth, all.most,
                     all.throughput / base.throughput, base.third_quartile / all.third_quartile,
                     base.ninetieth / all.ninetieth, base.ninety_fifth / all.ninety_fifth);
}

}  // namespace

void add_allocation_options(po::options_description& options) {
  options.add_options()("allocation", "no study, but which accelerators arrays get: the policies side by side")(
      "jobs", po::value<std::string>()->value_name("FILE"),
      "with --allocation: arrays of that file (devices,pattern,arrival,seconds,sensitive,name) instead of drawn ones")(
      "seed", po::value<std::int64_t>()->value_name("S"),
      "with --allocation: of the first drawn queue; with --planner: of the search; 0 unless told")(
      "queues", po::value<int>()->value_name("N"), "with --allocation: drawn queues of 300 arrays, 8 unless told")(
      "communication", po::value<double>()->value_name("C"),
      "with --allocation: what part of their time sensitive arrays communicate, 0.1 unless told")(
      "bandwidth", po::value<std::string>()->value_name("mapa|rings"),
      "with --allocation: of a set, as MAPA predicts it (unless told), or of its rings");
  add_topology_options(options);
}

int simulate_allocation(const Arguments& arguments) {
  if (arguments.has("CONFIG.yaml")) throw Error(ErrorKind::kConfig, "found a config beside --allocation, wanted none");
  const bool named = arguments.has("topology") || arguments.has("machine");
  const Topology topology = named ? topology_from(arguments) : built_in_machine("dgx-1v", "--machine");
  const Scores scores(topology);
  const TimeModel model(scores, bandwidth_from(arguments));
  const std::vector<std::vector<Job>> queues = queues_from(arguments, topology.size());
  std::string text = fmt::format(
      "{}, {} queue{}; simulated. Slowdowns are those of sensitive arrays on several accelerators, against the idle\n"
      "machine's best set; on the right, the baseline's over the policy's.\n\n"
      "{:<11} {:>7} {:>7} {:>7} {:>7} {:>7} {:>11} {:>8} {:>7} {:>7}\n",
      printable(topology.name()), queues.size(), queues.size() == 1 ? "" : "s", "policy", "mean", "75 %", "90 %",
      "95 %", "most", "throughput", "75 %", "90 %", "95 %");
  std::optional<Summary> base;
  for (const PolicyKind& kind : policies()) {
    std::vector<std::vector<Placed>> placed;
    placed.reserve(queues.size());
    for (const std::vector<Job>& queue : queues) placed.push_back(run_queue(queue, model, *kind.make(model)));
    const Summary all = summary(queues, placed);
    if (!base) base = all;
    text += row(kind, all, *base);
  }
  print(text);
  return 0;
}

}  // namespace hfta::engine
