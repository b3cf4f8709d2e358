// A study of each method and of each rule of early stopping, killed a hundred times, comes to what it comes to
// undisturbed.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/memory_files.hpp"
#include "base/random.hpp"
#include "engine/simulate/simulation.hpp"
#include "storage/memory/memory_store.hpp"
#include "studies.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

constexpr int kKills = 100;

// What differs between the studies; each has more than a hundred rounds.
struct Study {
  std::string lines;
  std::string parameters = {};
  std::optional<double> target = {};
};
// Of two numbers, one applies to two of the three widths only, and one of these depends on it in turn.
const std::string kConditional =
    "  smooth: {min: 0.0, max: 0.3, when: {hidden: [64, 128]}}\n"
    "  act: {values: [a, b], when: {hidden: 64}}\n"
    "  leak: {min: 0.0, max: 1.0, when: {act: b}}\n";
const std::string kObjectives =
    "metric: [{name: val_accuracy, goal: maximize}, {name: parameters, goal: minimize}, {name: val_loss}]\n";
const std::vector<Study> kStudies = {
    {"method: random"},
    {"method: tpe"},
    {"method: pbt\npbt: {population: 6, interval: 2}"},
    {"method: hyperband\nhyperband: {max_epochs: 9}"},
    {"method: hyperband\nhyperband: {max_epochs: 9}\nearly_stopping: [{name: threshold, upper: 2.2}]"},
    {"method: random\nearly_stopping: median"},
    {"method: tpe\nearly_stopping: {name: percentile, percentile: 40}"},
    {"method: random\nearly_stopping: asha"},
    {"method: tpe\nearly_stopping: {name: asha, mode: stop}"},
    {"method: random\nearly_stopping: {name: sha, eta: 2}"},
    {"method: tpe\nearly_stopping: [{name: threshold, upper: 2.2}, {name: patience, patience: 2}]"},
    {"method: random\nearly_stopping: [{name: patience, patience: 2}, median, asha, {name: target, value: 0.2}]"},
    {"method: random\nearly_terminate: {type: hyperband, min_iter: 2, eta: 2}"},
    {"method: hyperband\nhyperband: {max_epochs: 9, sampler: tpe}"},
    {"method: bohb\nbohb: {max_epochs: 9, min_points: 3}"},
    {"method: dehb\ndehb: {max_epochs: 9}"},
    {"method: freeze_thaw\nfreeze_thaw: {startup_trials: 3}\nbudget: {epochs: 300}"},
    {"method: freeze_thaw\nfreeze_thaw: {startup_trials: 3, slots: 5}\nearly_stopping: {name: threshold, upper: 2.2}\n"
     "budget: {epochs: 200}"},
    {"method: freeze_thaw\nfreeze_thaw: {startup_trials: 3}\nrepeat: 2\nbudget: {epochs: 300}"},
    {"method: random\nbudget: {epochs: 300}"},
    {"budget: {epochs: 300}"},
    {"early_stopping: median\nbudget: {epochs: 300}"},
    {"method: gp\ngp: {startup_trials: 3}\nearly_stopping: {name: asha, mode: stop}\nbudget: {epochs: 300}"},
    {"method: tpe\nbudget: {epochs: 200}\nearly_stopping: asha"},
    {"method: bohb\nbohb: {max_epochs: 9, min_points: 3}\nbudget: {epochs: 333}"},
    {"method: random", "", 0.3},
    {"method: tpe\nearly_stopping: median", "", 0.25},
    {"method: random\npoints: [{lr: 0.01, hidden: 64}, {dropout: 0.5}]\nconstraints: [\"dropout * 100 < hidden\"]"},
    {"method: tpe\npoints: [{lr: 0.01, hidden: 64}]\nconstraints: [\"dropout * 100 < hidden\"]"},
    {"method: random", kConditional},
    {"method: tpe\nconstraints: [\"dropout + leak < 1\"]", kConditional},
    {"method: dehb\ndehb: {max_epochs: 9}", kConditional},
    {"method: hyperband\nhyperband: {max_epochs: 9, sampler: tpe}", kConditional},
    {kObjectives + "method: nsga2\nnsga2: {population: 5}"},
    {kObjectives + "method: nsga2\nnsga2: {population: 5}\nconstraints: [\"dropout + leak < 1\"]", kConditional},
    {kObjectives + "method: auto\nnsga2: {population: 5}\nbudget: {epochs: 300}"},
    {kObjectives + "method: sobol"},
};

StudyConfig config_of(const Study& study) {
  const bool capped = study.lines.find("budget") == std::string::npos;
  const std::string lines =
      study.lines + (capped ? "\nrun_cap: 60" : "") +
      "\nseed: 3\narray: {width: 3}\n"
      "train: {epochs: 9, loss: cross_entropy, optimizer: {name: sgd, lr: \"${lr}\", weight_decay: \"${wd}\"}}\n";
  StudyConfig config = digits_study(lines, study.parameters);
  config.target = study.target;
  return config;
}

// Where a life ends: at a place that every life comes to.
std::string order_for(CountedRandom& random) {
  static const std::vector<std::string> places = {"epoch-ended", "in-transaction", "committed"};
  return fmt::format("{}@{}=full", places[random.below(places.size())], 1 + random.below(3));
}

struct Lives {
  storage::MemoryStudies studies;
  Faults none;
  MemoryFiles files{none};
  std::atomic<int> stop{0};

  // Whether it came to its end.
  bool live(const StudyConfig& config, const std::string& order) {
    const Faults faults(order);
    files.use(faults);
    storage::MemoryStore store(studies);
    try {
      (void)simulate(config, *make_invented_curves(config), {1}, store, files, faults, stop);
      return true;
    } catch (const Error& error) {
      REQUIRE_THAT(error.what(), Catch::Contains("a fault that was asked for"));
      return false;
    }
  }

  [[nodiscard]] std::string table(const StudyConfig& config) {
    storage::MemoryStore store(studies);
    return table_of(store, config);
  }
};

}  // namespace

TEST_CASE("a study of each method, killed a hundred times, ends in the same table") {
  for (const Study& study : kStudies) {
    CAPTURE(study.lines, study.parameters);
    const StudyConfig config = config_of(study);
    Lives undisturbed, killed;
    REQUIRE(undisturbed.live(config, ""));
    CountedRandom random(20261124, Stream::kSimulation, 0);
    int kills = 0;
    while (kills < kKills && !killed.live(config, order_for(random))) ++kills;
    CHECK(kills >= kKills / 3);  // a study that ends early has fewer rounds
    killed.live(config, "");
    CHECK(first_difference(killed.table(config), undisturbed.table(config)) == "");
  }
}
