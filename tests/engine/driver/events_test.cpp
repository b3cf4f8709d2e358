// What a run tells is what the store has, once each and in order, over any number of runs.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "engine/report/report.hpp"
#include "study_fixture.hpp"

using namespace hfta::engine;
using namespace hfta::engine::testing;
namespace trials = hfta::trials;

namespace {

// A study as somebody who hears its events sees it.
struct Heard {
  std::map<int, trials::Params> started;
  std::map<int, std::map<int, double>> epochs;
  std::map<int, trials::State> ended;
};

Heard hear(const std::vector<Event>& events) {
  Heard heard;
  for (const Event& event : events) {
    if (const auto* start = std::get_if<TrialStarted>(&event)) {
      CHECK_FALSE(heard.epochs.contains(start->trial));
      heard.started[start->trial] = start->params;
    } else if (const auto* epoch = std::get_if<EpochEnded>(&event)) {
      CHECK(heard.started.contains(epoch->trial));
      CHECK_FALSE(heard.ended.contains(epoch->trial));
      std::map<int, double>& known = heard.epochs[epoch->trial];
      CHECK(epoch->epoch == static_cast<int>(known.size()) + 1);
      known[epoch->epoch] = epoch->value;
    } else if (const auto* end = std::get_if<TrialEnded>(&event)) {
      CHECK(heard.started.contains(end->trial));
      CHECK(heard.ended.emplace(end->trial, end->state).second);
    }
  }
  return heard;
}

// Each trial starts where it trains its first epoch, unless the run was stopped in between.
void check_places(const std::vector<Event>& events) {
  std::map<int, std::pair<int, int>> places;  // by trial: array and slot
  for (const Event& event : events) {
    if (const auto* start = std::get_if<TrialStarted>(&event)) places[start->trial] = {start->array, start->slot};
    const auto* epoch = std::get_if<EpochEnded>(&event);
    if (epoch == nullptr || epoch->epoch != 1) continue;
    CAPTURE(epoch->trial);
    CHECK(places.at(epoch->trial) == std::pair(epoch->array, epoch->slot));
  }
}

void check_same(const Heard& heard, const std::vector<trials::Trial>& stored) {
  CHECK(heard.ended.size() == stored.size());
  for (const trials::Trial& trial : stored) {
    CAPTURE(trial.number);
    REQUIRE(heard.ended.contains(trial.number));
    CHECK(heard.ended.at(trial.number) == trial.state);
    CHECK(heard.started.at(trial.number) == trial.params);
    CHECK(heard.epochs.at(trial.number).size() == trial.epochs.size());
  }
}

}  // namespace

TEST_CASE("events tell the whole study, once each") {
  for (const char* rule : {"hyperband", "asha", "median"}) {
    for (const int rounds : {0, 7}) {
      CAPTURE(rule, rounds);
      StudyConfig config = std::string(rule) == "hyperband" ? digits_config() : random_config(40);
      if (std::string(rule) != "hyperband") config.early_stopping = {{rule}};
      StudyFixture study(std::move(config));
      study.config.width = 8;
      if (rounds == 0) {
        (void)study.run();
        check_places(study.recorder.events);
      } else {
        (void)study.run_in_pieces(rounds, 1, true);
      }
      check_same(hear(study.recorder.events), study.trials());
    }
  }
}

TEST_CASE("a trial that loses its slot before its first round has not started") {
  for (const int width : {3, 5, 7}) {
    StudyFixture study(digits_config());
    study.config.method = "pbt";
    study.config.method_options.pbt = {.population = 8, .interval = 2, .max_epochs = 9};
    study.config.run_cap = 16;
    study.config.width = width;
    (void)study.run();
    check_places(study.recorder.events);
  }
}

TEST_CASE("the store tells again what its runs told") {
  const std::string method = GENERATE("hyperband", "pbt");
  StudyFixture study(digits_config());
  study.config.method = method;
  study.config.method_options.pbt = {.population = 14, .interval = 1, .max_epochs = 5};
  CHECK(study.run_in_pieces(9, 2, true) > 1);
  const auto store = study.open();
  std::multiset<std::string> told, again;
  // Of a trial that has begun the store knows where it trained first, which may be elsewhere.
  const auto compared = [](const std::string& line) -> std::string {
    for (const char* name : {"trial_started", "epoch_ended", "trial_copied", "trial_ended", "tested"}) {
      if (line.find(std::string("\"event\":\"") + name + '"') == std::string::npos) continue;
      return name == std::string("trial_started") ? line.substr(0, line.find(",\"array\"")) : line;
    }
    return "";
  };
  for (const Event& event : study.recorder.events) {
    told.insert(compared(event_json(event)));
  }
  std::istringstream lines(report_events(read_report(*store, study.config.study)));
  std::string first, last;
  for (std::string line; std::getline(lines, line); last = line) {
    if (first.empty()) first = line;
    again.insert(compared(line));
  }
  told.erase("");
  again.erase("");
  CHECK(first.find("run_started") != std::string::npos);
  CHECK(last.find(R"("event":"run_ended","finished":true)") != std::string::npos);
  // A trial whose run ended before its first epoch did is told of twice.
  CHECK(std::set<std::string>(told.begin(), told.end()) == std::set<std::string>(again.begin(), again.end()));
  CHECK(std::set<std::string>(again.begin(), again.end()).size() == again.size());
  CHECK(again.size() > 300);
}
