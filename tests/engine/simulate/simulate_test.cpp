// What simulated studies come to, how long they take in simulated time, and how full arrays are.

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "base/memory_files.hpp"
#include "engine/report/report.hpp"
#include "engine/simulate/simulated_trainer.hpp"
#include "engine/simulate/simulation.hpp"
#include "storage/memory/memory_store.hpp"
#include "studies.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;

namespace {

// A method, or a rule of early stopping for random search.
const std::vector<std::string> kMethods = {"hyperband", "random", "median", "asha"};

std::string lines_of(const std::string& method, int trials, int width) {
  const bool hyperband = method == "hyperband", random = method == "random";
  return fmt::format("seed: 1\nmethod: {}\nrun_cap: {}\narray: {{width: {}}}\n", hyperband ? method : "random", trials,
                     width) +
         (hyperband ? "hyperband: {min_epochs: 1, max_epochs: 27, eta: 3}\n" : "") +
         (hyperband || random ? "" : fmt::format("early_stopping: {}\n", method)) +
         "train: {epochs: 27, loss: cross_entropy, optimizer: {name: sgd, lr: \"${lr}\", weight_decay: \"${wd}\"}}\n";
}

struct Result {
  Outcome outcome;
  std::string table;
  ReportInput report;
};

Result simulated(const std::string& method, int trials, int width, int devices) {
  const StudyConfig config = digits_study(lines_of(method, trials, width));
  const std::unique_ptr<Curves> curves = make_invented_curves(config);
  const Faults faults;
  MemoryFiles files(faults);
  const std::atomic<int> stop{0};
  storage::MemoryStudies studies;
  storage::MemoryStore store(studies);
  Result result;
  result.outcome = simulate(config, *curves, {devices}, store, files, faults, stop);
  result.table = table_of(store, config);
  result.report = read_report(store, config.study);
  return result;
}

}  // namespace

TEST_CASE("a simulation is the same every time, at any width, on any number of devices") {
  for (const std::string& method : kMethods) {
    const Result first = simulated(method, 120, 16, 1);
    CHECK(first.outcome.any_complete);
    const Result again = simulated(method, 120, 16, 1);
    CHECK(first_difference(again.table, first.table) == "");
    CHECK(again.outcome.seconds == first.outcome.seconds);
    CHECK(again.outcome.rounds == first.outcome.rounds);
    for (const int devices : {1, 3}) {
      for (const int width : {1, 5, 32}) {
        CAPTURE(method, devices, width);
        CHECK(first_difference(simulated(method, 120, width, devices).table, first.table) == "");
      }
    }
  }
}

TEST_CASE("slots are busy for 97 % of the time until the last trial begins") {
  for (const std::string& method : kMethods) {
    const Result result = simulated(method, 3000, 32, 1);
    REQUIRE(result.report.occupancy);
    INFO(method << ": " << occupancy_text(result.report.occupancy));
    CHECK(result.report.occupancy->widest == 32);
    CHECK(result.report.occupancy->filling.busy >= 0.97);
  }
}

namespace {

/// A study that ends by its budget. Its parameter `hidden` splits trials into partitions.
ReportInput spent(const std::string& method, const std::string& rule, const SimulationOptions& options) {
  const StudyConfig config = digits_study(
      fmt::format("method: {}\nearly_stopping: {}\nbudget: {{epochs: 4000}}\nseed: 7\narray: {{width: 8}}\n"
                  "train: {{epochs: 27, loss: cross_entropy, optimizer: {{name: sgd, lr: \"${{lr}}\", weight_decay: "
                  "\"${{wd}}\"}}}}\n",
                  method, rule));
  storage::MemoryStudies studies;
  storage::MemoryStore store(studies);
  const Faults faults;
  MemoryFiles files(faults);
  const std::atomic<int> stop{0};
  (void)simulate(config, *make_invented_curves(config), options, store, files, faults, stop);
  return read_report(store, config.study);
}

}  // namespace

TEST_CASE("a study that ends by its budget has its slots as busy, whatever splits it into partitions") {
  struct Case {
    std::string method, rule;
  };
  const std::vector<Case> cases = {{"random", "asha"}, {"sobol", "median"}, {"hyperband", "none"}, {"tpe", "none"},
                                   {"tpe", "asha"},    {"gp", "asha"},      {"bohb", "none"}};
  for (const auto& [method, rule] : cases) {
    for (const int devices : {1, 4}) {
      const std::optional<Occupancy> occupancy = spent(method, rule, {devices}).occupancy;
      REQUIRE(occupancy);
      INFO(method << ", " << rule << ", " << devices << " devices: " << occupancy_text(occupancy));
      CHECK(occupancy->filling.busy >= 0.97);
    }
  }
}

TEST_CASE("a device that trains slots one after another begins no trials only to fill them") {
  for (const std::string method : {"random", "tpe"}) {
    const SimulationOptions one_by_one{1, {}, 0};
    CAPTURE(method);
    CHECK(spent(method, "asha", one_by_one).trials.size() < spent(method, "asha", {1}).trials.size());
  }
}

TEST_CASE("more devices take as much less time") {
  for (const std::string method : {"hyperband", "random", "median"}) {  // asha's last promotions wait for each other
    const double alone = simulated(method, 6000, 32, 1).outcome.seconds;
    for (const int devices : {2, 4, 8}) {
      const double together = simulated(method, 6000, 32, devices).outcome.seconds;
      INFO(method << " on " << devices << ": " << alone << " s, " << together << " s");
      CHECK(alone / together >= 0.9 * devices);
    }
  }
}

namespace {

/// Trials of one partition that all fit in the devices' slots, with nothing to decide before their last epoch.
Outcome shared(int trials, const SimulationOptions& options, storage::MemoryStudies& studies) {
  const StudyConfig config = parse_config(
      fmt::format("study: s\nseed: 1\nmethod: random\nrun_cap: {}\nmetric: {{name: val_loss, goal: minimize}}\n"
                  "parameters: {{lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}}}}\n"
                  "model: {{layers: [flatten, {{linear: [64, 10]}}]}}\n"
                  "data: {{name: digits, batch_size: 64, validation: 0.2}}\n"
                  "train: {{epochs: 81, loss: cross_entropy, optimizer: {{name: sgd, lr: \"${{lr}}\"}}}}\n",
                  trials),
      "/simulated/s.yaml", {});
  const std::unique_ptr<Curves> curves = make_invented_curves(config);
  const Faults faults;
  MemoryFiles files(faults);
  const std::atomic<int> stop{0};
  storage::MemoryStore store(studies);
  return simulate(config, *curves, options, store, files, faults, stop);
}

double seconds_of(int trials, const SimulationOptions& options) {
  storage::MemoryStudies studies;
  return shared(trials, options, studies).seconds;
}

/// Slots one by one, as on a CPU: only then do speeds say all.
SimulationOptions one_by_one(int devices, std::function<double(int, double)> speed) {
  return {devices, std::move(speed), 0};
}

}  // namespace

TEST_CASE("a trial of a rare partition does not wait for ever while a method that learns draws others") {
  for (const std::string& method : {std::string("tpe"), std::string("gp")}) {
    const StudyConfig config = digits_study(
        fmt::format("method: {}\nearly_stopping: median\nbudget: {{epochs: 500}}\nseed: 3\narray: {{width: 4}}\n"
                    "train: {{epochs: 9, loss: cross_entropy, optimizer: {{name: sgd, lr: \"${{lr}}\", weight_decay: "
                    "\"${{wd}}\"}}}}\n",
                    method));
    const Faults faults;
    MemoryFiles files(faults);
    const std::atomic<int> stop{0};
    storage::MemoryStudies studies;
    storage::MemoryStore store(studies);
    (void)simulate(config, *make_invented_curves(config), {1}, store, files, faults, stop);
    const std::vector<trials::Trial> trials = store.trials(config.study);
    const auto under_way = std::count_if(trials.begin(), trials.end(), [](const trials::Trial& trial) {
      return trial.state == trials::State::kRunning;
    });
    CAPTURE(method, trials.size(), under_way);
    CHECK(2 * under_way <= static_cast<std::ptrdiff_t>(trials.size()));
  }
}

TEST_CASE("unequal devices are within a tenth of what they can do together, and far from an even division") {
  struct Case {
    std::vector<double> speeds;
    int trials;
  };
  const std::vector<Case> cases = {{{1, 1.0 / 3}, 16}, {{1.0 / 3, 1}, 16}, {{1, 1.0 / 3}, 32},    {{1, 0.5, 0.25}, 28},
                                   {{1, 0.1}, 11},     {{1, 1, 1}, 24},    {{1, 0.3, 0.3, 1}, 26}};
  for (const Case& c : cases) {
    const auto devices = static_cast<int>(c.speeds.size());
    const auto speed = [&c](int device, double) { return c.speeds[static_cast<std::size_t>(device)]; };
    const double together = std::accumulate(c.speeds.begin(), c.speeds.end(), 0.0);
    const double alone = seconds_of(c.trials, one_by_one(1, nullptr));
    const double shared_time = seconds_of(c.trials, one_by_one(devices, speed));
    CAPTURE(c.speeds, c.trials, alone, shared_time);
    CHECK(alone / shared_time >= 0.9 * together);
    // An even division takes as long as the slowest device takes for its part.
    const double slowest = *std::min_element(c.speeds.begin(), c.speeds.end());
    const double even = alone / devices / slowest;
    if (slowest <= 1.0 / 3) CHECK(even / shared_time >= 1.4);
  }
}

TEST_CASE("trials are divided anew when a device becomes slower, and when it recovers") {
  const double alone = seconds_of(16, one_by_one(1, nullptr));
  // Half of the time of two full devices; then one is a third as fast for as long; then it is as before.
  const auto speed = [alone](int device, double seconds) {
    const bool slow = device == 1 && seconds >= alone / 8 && seconds < alone * 3 / 8;
    return slow ? 1.0 / 3 : 1.0;
  };
  const double found = seconds_of(16, one_by_one(2, speed));
  const double ideal = alone / 8 + alone / 4 + (alone - alone / 4 - alone / 3) / 2;
  CAPTURE(alone, found, ideal);
  CHECK(found <= ideal / 0.9);
}

TEST_CASE("a device that would only be waited for gets nothing, and one that has nothing to do gets its part") {
  // 1 : 0.01, so that even a single slot takes longer there than all of them here.
  storage::MemoryStudies studies;
  const Outcome outcome = shared(
      8, one_by_one(2, [](int device, double seconds) { return device == 1 && seconds > 0 ? 0.01 : 1.0; }), studies);
  const double alone = seconds_of(8, one_by_one(1, nullptr));
  CHECK(outcome.seconds <= 1.15 * alone + alone / 81 / 2 * 100);  // its first epoch showed how slow it is
}

TEST_CASE("where an epoch of few slots takes as long as one of many, slots stay together") {
  // All of an epoch is there however few slots there are: two devices can do no better than one.
  storage::MemoryStudies studies;
  (void)shared(16, {2, nullptr, 1.0}, studies);
  storage::MemoryStore store(studies);
  std::map<int, int> widest;  // by array, after the first rounds, which had to show it
  for (const storage::RoundRecord& round : store.rounds("s")) {
    if (round.round >= 4) widest[round.array] = std::max(widest[round.array], round.occupied);
  }
  CHECK(widest == std::map<int, int>{{0, 16}});
}

TEST_CASE("threads of a simulated CPU train a slot each, and share the rest") {
  struct Case {
    int threads, slots;
    double speed;
  };
  for (const Case& c : {Case{1, 1, 1}, Case{1, 5, 1}, Case{2, 1, 1.7}, Case{4, 1, 3.1}, Case{2, 2, 2}, Case{4, 8, 4},
                        Case{4, 2, 3.4}, Case{2, 3, 3 / (1 + 1 / 1.7)}}) {
    CAPTURE(c.threads, c.slots);
    CHECK(speed_of_threads(c.threads, c.slots) == Approx(c.speed));
  }
}

namespace {

/// One bracket of Hyperband, 81 trials of which one trains for 81 epochs, on CPUs of that many threads.
struct Bracket {
  storage::MemoryStudies studies;
  StudyConfig config;
  double seconds = 0;

  Bracket(const std::vector<int>& threads, bool lend)
      : config(parse_config(
            fmt::format("study: s\nseed: 1\nmethod: hyperband\nhyperband: {{min_epochs: 1, max_epochs: 81, eta: 3}}\n"
                        "run_cap: 81\nmetric: {{name: val_loss, goal: minimize}}\n"
                        "parameters: {{lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}}}}\n"
                        "model: {{layers: [flatten, {{linear: [64, 10]}}]}}\n"
                        "data: {{name: digits, batch_size: 64, validation: 0.2}}\narray: {{lend: {}}}\n"
                        "train: {{epochs: 81, loss: cross_entropy, optimizer: {{name: sgd, lr: \"${{lr}}\"}}}}\n",
                        lend),
            "/simulated/s.yaml", {})) {
    const Faults faults;
    MemoryFiles files(faults);
    const std::atomic<int> stop{0};
    storage::MemoryStore store(studies);
    SimulationOptions options;
    options.devices = static_cast<int>(threads.size());
    options.threads = threads;
    seconds = simulate(config, *make_invented_curves(config), options, store, files, faults, stop).seconds;
  }
  [[nodiscard]] std::string table() {
    storage::MemoryStore store(studies);
    return table_of(store, config);
  }
};

}  // namespace

TEST_CASE("a bracket ends sooner where idle devices lend their threads, with the same table") {
  Bracket apart({1, 1, 1, 1}, false), lent({1, 1, 1, 1}, true), unequal({2, 1, 1}, true);
  CAPTURE(apart.seconds, lent.seconds);
  CHECK(apart.seconds >= 1.3 * lent.seconds);
  CHECK(first_difference(lent.table(), apart.table()) == "");
  CHECK(first_difference(unequal.table(), apart.table()) == "");
  // Devices that are no CPUs lend nothing.
  CHECK(Bracket({0, 0, 0, 0}, true).seconds == Bracket({0, 0, 0, 0}, false).seconds);
}
