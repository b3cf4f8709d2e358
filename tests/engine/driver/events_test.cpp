// What a run tells is what the store has, once each and in order, over any number of runs.
#include <catch2/catch.hpp>
#include <map>
#include <set>

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
  std::map<int, int> sits;  // trial -> slot
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
      if (std::string(rule) != "hyperband") config.early_stopping = rule;
      StudyFixture study(std::move(config));
      study.config.width = 8;
      if (rounds == 0) {
        (void)study.run();
      } else {
        (void)study.run_in_pieces(rounds, 1, true);
      }
      check_same(hear(study.recorder.events), study.trials());
    }
  }
}
