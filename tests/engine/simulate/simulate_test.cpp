// What simulated studies come to, how long they take in simulated time, and how full arrays are.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/memory_files.hpp"
#include "engine/report/report.hpp"
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
