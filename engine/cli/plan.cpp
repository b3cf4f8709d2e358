// hfta-tune plan

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/cli/places.hpp"
#include "engine/cli/plan_report.hpp"
#include "engine/driver/draws/strategy.hpp"

namespace hfta::engine {
namespace {

constexpr int kMostDrawn = 10000;    // configurations that are drawn to count partitions
constexpr int kWithoutLimit = 1000;  // configurations that are drawn where the study has no end

Usage plan_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune plan CONFIG.yaml [options]";
  usage.about =
      "What would run: space, partitions with width and memory, lowerings. Trains nothing, creates nothing.\n"
      "With --cluster: a plan of one training step on several devices, simulated.\n";
  usage.options.add_options()("format", boost::program_options::value<std::string>()->value_name("table|json"),
                              "table unless told")(
      "measure", "time every way to run each partition on the real data, and remember the fastest");
  add_override_options(usage.options);
  add_cluster_options(usage.options);
  usage.positional = {"CONFIG.yaml"};
  return usage;
}

void count_in(const StudyConfig& config, trials::Params params, Plan& plan) {
  const std::string name = config.partition(params);
  ++plan.drawn;
  auto found =
      std::find_if(plan.partitions.begin(), plan.partitions.end(), [&](const auto& p) { return p.name == name; });
  if (found == plan.partitions.end()) found = plan.partitions.insert(found, {name, 0, std::move(params), {}});
  ++found->trials;
}

Plan make_plan(const StudyConfig& config, const Fleet& fleet) {
  const Strategy strategy = make_strategy(config, next_caps({}, config));
  Plan plan;
  plan.trials = strategy.trials();
  plan.max_epochs = strategy.scheduler->max_epochs();
  plan.devices = fleet.devices;
  if (plan.trials) plan.epochs = strategy.scheduler->planned_epochs(0, *plan.trials);
  const int most = std::min(plan.trials.value_or(kWithoutLimit), kMostDrawn);
  const int count = config.repetitions.count();
  std::vector<trials::Params> drawn;
  telling_file(config, [&] { drawn = strategy.sampler->ask(0, std::max(1, most / count), {}); });
  for (const trials::Params& one : drawn) {
    for (int i = 0; i < count; ++i) count_in(config, config.repetitions.params_of(one, i), plan);
  }
  std::sort(plan.partitions.begin(), plan.partitions.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (Partition& partition : plan.partitions) {
    for (const auto& trainer : fleet.trainers) {
      PartitionPlan one = trainer->plan(partition.example);
      one.width = std::min(config.width.value_or(one.width), partition.trials);
      partition.widths.push_back(one.width);
      if (partition.widths.size() == 1) partition.plan = std::move(one);
    }
  }
  return plan;
}

void measure_ways(Plan& plan, Trainer& trainer) {
  for (Partition& p : plan.partitions) {
    tell(fmt::format("measuring {} ...", p.name.empty() ? "how to run" : printable(p.name)));
    p.ways = trainer.measure(p.example, never);
  }
}

}  // namespace

int plan_command(const Words& words) {
  const Usage usage = plan_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  if (arguments.has("cluster")) return plan_on_cluster(arguments);
  const std::string format =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "json"});
  const StudyConfig config = load_begun(arguments.required("CONFIG.yaml"), overrides_from(arguments));
  tell_warnings(config);
  // Choices that this machine remembers are shown, but a plan alone makes no folder for them.
  const bool measures = arguments.has("measure");
  const std::filesystem::path cache = cache_folder();
  std::error_code ignored;
  const bool keeps = measures || std::filesystem::is_directory(cache, ignored);
  const Fleet fleet = make_fleet(config, keeps ? cache : std::filesystem::path());
  Plan plan = make_plan(config, fleet);
  if (measures) measure_ways(plan, *fleet.trainers.front());
  print(format == "json" ? plan_json(config, plan) : plan_table(config, plan));
  return 0;
}

}  // namespace hfta::engine
