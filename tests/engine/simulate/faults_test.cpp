// Thousands of small studies, each killed, short of disk, memory and devices at random: all come to what they come to
// undisturbed.
//
// HFTA_SIMULATED_STUDIES says how many (1000); HFTA_FIRST_STUDY from which on, to see one again.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/memory_files.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "engine/simulate/simulation.hpp"
#include "storage/checkpoints.hpp"
#include "storage/memory/memory_store.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "studies.hpp"
#include "trials/pareto.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

constexpr int kMostLives = 60;
constexpr int kKinds = 5;  // one study in five is disturbed in a file, another is compared with one in a file

/// More trials diverge than in the curves that a user sees.
class WildCurves final : public Curves {
 public:
  WildCurves(const StudyConfig& config, double share) : tame_(make_invented_curves(config)), share_(share) {}
  [[nodiscard]] std::map<std::string, double> at(int number, const trials::Params& params, int epoch) const override {
    std::map<std::string, double> metrics = tame_->at(number, params, epoch);
    CountedRandom random(11, Stream::kSimulation, static_cast<std::uint64_t>(number));
    const bool wild = random.uniform() < share_;
    if (wild && epoch >= static_cast<int>(1 + random.below(5))) metrics["train_loss"] = std::nan("");
    return metrics;
  }

 private:
  std::unique_ptr<Curves> tame_;
  double share_;
};

std::string repetitions_of(CountedRandom& random) {
  static const std::vector<std::string> ranks = {"mean", "lower", "median"};
  const std::string rank = "rank: " + ranks[random.below(ranks.size())] + "\n";
  switch (random.below(3)) {
    case 0:
      return rank + fmt::format("repeat: {}\n", 2 + random.below(3));
    case 1:
      return rank + fmt::format("folds: {}\n", 2 + random.below(3));
    default:
      return rank + "repeat: 2\nfolds: 2\n";
  }
}

std::string rest_of_lines(CountedRandom& random, int most, bool repeated = false) {
  return fmt::format("run_cap: {}\narray: {{width: {}}}\ntrain: {{epochs: {}, loss: cross_entropy, ",
                     repeated ? 2 + random.below(8) : 3 + random.below(25), 1 + random.below(9), most) +
         "optimizer: {name: sgd, lr: \"${lr}\", weight_decay: \"${wd}\"}}\n";
}

// A method that learns, under brackets.
std::string bracket_lines_of(CountedRandom& random, int most, int eta) {
  static const std::vector<std::string> methods = {"hyperband", "bohb", "dehb", "freeze_thaw"};
  const std::string& method = methods[random.below(methods.size())];
  return fmt::format("seed: {}\nmethod: {}\n{}: {{max_epochs: {}, eta: {}{}}}\n", random.below(1000), method, method,
                     most, eta,
                     method == "hyperband"     ? ", sampler: tpe"
                     : method == "bohb"        ? ", min_points: 2"
                     : method == "freeze_thaw" ? ", startup_trials: 3"
                                               : "") +
         (method == "hyperband" ? "tpe: {startup_trials: 3}\n" : "") + rest_of_lines(random, most);
}

std::string lines_of(CountedRandom& random, bool learns, bool depends) {
  const int eta = static_cast<int>(2 + random.below(2)), most = static_cast<int>(2 + random.below(9));
  const double kind = random.uniform();
  const bool hyperband = !learns && kind < 0.3, pbt = !learns && !hyperband && kind < 0.6 && !depends;
  const bool brackets = learns && kind < 0.3;
  if (brackets) return bracket_lines_of(random, most, eta);
  static const std::vector<std::string> learning = {"tpe", "gp", "cmaes", "evolution"};
  const std::string method = learns      ? learning[random.below(learning.size())]
                             : hyperband ? "hyperband"
                             : pbt       ? "pbt"
                                         : "random";
  std::string lines = fmt::format("seed: {}\nmethod: {}\n", random.below(1000), method);
  if (method == "tpe" || method == "gp") lines += fmt::format("{}: {{startup_trials: 3}}\n", method);
  if (method == "cmaes" || method == "evolution") lines += fmt::format("{}: {{population: 4}}\n", method);
  if (pbt) {
    lines += fmt::format("pbt: {{population: {}, interval: {}, truncation: {}}}\n", 2 + random.below(12),
                         1 + random.below(2), 20 + random.below(31));
  }
  if (hyperband) lines += fmt::format("hyperband: {{min_epochs: 1, max_epochs: {}, eta: {}}}\n", most, eta);
  const bool repeated = !pbt && random.uniform() < 0.4;
  static const std::vector<std::string> rules = {"none",
                                                 "median",
                                                 "asha",
                                                 "sha",
                                                 "{name: asha, mode: stop}",
                                                 "{name: percentile, percentile: 40, min_trials: 2}",
                                                 "{name: bands, eta: 2}",
                                                 "[{name: threshold, upper: 2.2}, asha]",
                                                 "[{name: patience, patience: 2}, median]",
                                                 "[median, asha, {name: target, value: 0.3}]"};
  static const std::vector<std::string> own = {"none", "{name: threshold, upper: 2}", "{name: patience, patience: 2}"};
  static const std::vector<std::string> of_repetitions = {"none",
                                                          "median",
                                                          "asha",
                                                          "sha",
                                                          "{name: percentile, percentile: 40, min_trials: 2}",
                                                          "{name: racing, confidence: 75}",
                                                          "[{name: threshold, upper: 2.2}, asha]"};
  static const std::vector<std::string> brackets_of_repetitions = {"none", "{name: threshold, upper: 2}"};
  if (repeated) lines += repetitions_of(random);
  const std::vector<std::string>& those =
      repeated ? (hyperband ? brackets_of_repetitions : of_repetitions) : (hyperband || pbt ? own : rules);
  lines += fmt::format("early_stopping: {}\n", those[random.below(those.size())]);
  return lines + rest_of_lines(random, most, repeated);
}

// Of several objectives, which allow no rule of early stopping.
std::string objectives_lines_of(CountedRandom& random, bool learns) {
  static const std::vector<std::string> others = {"{name: parameters}", "{name: val_accuracy, goal: maximize}",
                                                  "{name: train_loss}, {name: parameters, goal: minimize}"};
  return fmt::format("seed: {}\nmetric: [{{name: val_loss}}, {}]\nmethod: {}\nnsga2: {{population: 4}}\n",
                     random.below(1000), others[random.below(others.size())], learns ? "nsga2" : "sobol") +
         rest_of_lines(random, static_cast<int>(2 + random.below(9)));
}

// What befalls one life: nothing, or one thing at some time.
std::string order_for(CountedRandom& random, bool with_memory) {
  static const std::vector<std::string> places = {
      "trials-added", "epoch-simulated:0", "epoch-simulated:1", "epoch-ended",   "weights-saved", "in-transaction",
      "committed",    "state-saved",       "file-written",      "files-removed", "copy-saved"};
  static const std::vector<std::string> actions = {"full", "fail", "memory"};
  const std::string& place = places[random.below(places.size())];
  // Only a device runs out of memory; what else fails ends the life, as a kill does.
  const bool device = place.starts_with("epoch-simulated");
  const std::string& action = actions[random.below(device ? (with_memory ? 3 : 2) : 1)];
  return fmt::format("{}@{}={}", place, 1 + random.below(device ? 6 : 12), action);
}

/// A study's store, opened anew in each life: in memory, or in a file.
class EitherStore {
 public:
  explicit EitherStore(bool in_file) {
    if (in_file) folder_.emplace("hfta-simulated");
  }
  [[nodiscard]] std::unique_ptr<storage::Store> open() {
    if (!folder_) return std::make_unique<storage::MemoryStore>(studies_);
    return std::make_unique<storage::SqliteStore>(
        storage::SqliteStore::open(folder_->path() / "s.db", storage::SqliteStore::Mode::kCreate));
  }

 private:
  storage::MemoryStudies studies_;
  std::optional<TemporaryFolder> folder_;
};

// One trial has one final state; epochs follow each other; nothing is left on disk of trials that are done.
void check_whole(storage::Store& store, const StudyConfig& config, MemoryFiles& files) {
  for (const trials::Trial& trial : store.trials(config.study)) {
    INFO("trial " << trial.number);
    CHECK(trial.state != trials::State::kRunning);
    CHECK(trial.state != trials::State::kWaiting);
    CHECK((trial.state == trials::State::kFail) == !trial.reason.empty());
    for (std::size_t i = 0; i < trial.epochs.size(); ++i) CHECK(trial.epochs[i].epoch == static_cast<int>(i) + 1);
  }
  for (const char* kind : {"running", "copied"}) {
    CHECK(files.list(store.states(config.study).folder / kind).empty());
  }
  if (!config.has_several_objectives()) return;
  storage::StudyStates states(files, store.states(config.study).folder);
  std::vector<int> kept = states.of(storage::StateKind::kFinished).trials();
  std::sort(kept.begin(), kept.end());
  CHECK(kept == trials::pareto_front(store.trials(config.study), config.objectives).numbers());
}

void check_study(int number) {
  CountedRandom random(20261121, Stream::kSimulation, static_cast<std::uint64_t>(number));
  // What a method that learns draws follows from how many slots are trained at once: on one device, as wide throughout.
  const bool learns = random.uniform() < 0.25;
  const bool depends = random.uniform() < 0.3;
  CountedRandom objectives(20261121, Stream::kSimulation, static_cast<std::uint64_t>(number), 1);
  const bool several = objectives.uniform() < 0.15;
  std::string lines = several ? objectives_lines_of(objectives, learns) : lines_of(random, learns, depends);
  if (depends) lines += "constraints: [\"dropout * 100 < hidden\"]\npoints: [{lr: 0.1}, {hidden: 32, dropout: 0.1}]\n";
  const std::string parameters = depends ? "  smooth: {min: 0.0, max: 0.3, when: {hidden: [64, 128]}}\n" : "";
  INFO(lines);
  const int devices = learns ? 1 : static_cast<int>(1 + random.below(3));
  const double wild = random.uniform() < 0.3 ? 0.4 : 0.05;
  const std::atomic<int> stop{0};
  const Faults none;
  StudyConfig reference = digits_study(lines, parameters);
  reference.select_best = !several && random.uniform() < 0.3;
  const WildCurves curves(reference, wild);
  MemoryFiles undisturbed(none);
  EitherStore undisturbed_store(number % kKinds == 1), store(number % kKinds == 0);
  const std::unique_ptr<storage::Store> wanted = undisturbed_store.open();
  (void)simulate(reference, curves, {1}, *wanted, undisturbed, none, stop);
  StudyConfig config = digits_study(lines, parameters);
  config.select_best = reference.select_best;
  MemoryFiles files(none);
  int lives = 1;
  std::string orders;
  for (;; ++lives) {
    const std::string order = lives < kMostLives ? order_for(random, !learns) : "";
    const Faults faults(random.uniform() < 0.1 ? "" : order);
    orders += order + " ";
    files.use(faults);
    try {
      (void)simulate(config, curves, {devices}, *store.open(), files, faults, stop);
      break;
    } catch (const Error& error) {
      INFO(orders);
      REQUIRE(lives < kMostLives);
      REQUIRE_THAT(error.what(), Catch::Contains("a fault that was asked for"));
    }
  }
  files.use(none);
  INFO(lives << " lives: " << orders);
  const std::unique_ptr<storage::Store> left = store.open();
  CHECK(first_difference(table_of(*left, config), table_of(*wanted, reference)) == "");
  check_whole(*left, config, files);
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

}  // namespace

TEST_CASE("disturbed studies come to what undisturbed ones come to") {
  const int first = number_from("HFTA_FIRST_STUDY", 0), count = number_from("HFTA_SIMULATED_STUDIES", 1000);
  for (int number = first; number < first + count; ++number) {
    INFO("HFTA_FIRST_STUDY=" << number << " HFTA_SIMULATED_STUDIES=1");
    check_study(number);
  }
}
