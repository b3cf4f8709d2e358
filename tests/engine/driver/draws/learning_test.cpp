// Studies of a method that learns: what a draw knows, on one device and several, undisturbed and stopped.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/driver/draws/draw_history.hpp"
#include "engine/driver/study/redraw.hpp"
#include "engine/driver/study/study.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;
using trials::Trial;

namespace {

StudyConfig learning_config(int run_cap, const std::string& stopping = "none", const std::string& method = "tpe") {
  StudyConfig config = random_config(run_cap);
  config.method = method;
  config.method_options.tpe.startup_trials = 4;
  config.method_options.gp.startup_trials = 4;
  config.method_options.cmaes.population = 4;
  config.method_options.evolution.population = 5;
  if (stopping != "none") config.early_stopping = {{stopping}};
  return config;
}

void check_redraws(StudyFixture& study, std::size_t wanted) {
  const std::unique_ptr<storage::Store> store = study.open();
  const std::vector<Redraw> all = redraw(study.config, *store);
  CHECK(all.size() == wanted);
  for (const Redraw& one : all) {
    INFO("trial " << one.number);
    CHECK(one.stored == one.drawn);
  }
}

std::set<int> views(StudyFixture& study) {
  std::set<int> seen;
  for (const Trial& trial : study.trials()) {
    if (trial.seen_rounds) seen.insert(*trial.seen_rounds);
  }
  return seen;
}

}  // namespace

TEST_CASE("a draw knows epochs of rounds that are over, and ends of earlier rounds") {
  DrawHistory history;
  history.add({{"x", 1.0}});
  history.add({{"x", 2.0}});
  history.report(0, false, {0.5});
  history.report(0, true, {0.5});
  history.end(0, State::kPruned, 1);
  history.end(1, State::kFail, std::nullopt);
  CHECK_FALSE(history.after(1)[0].ended);
  CHECK(history.after(2)[0].ended == State::kPruned);
  REQUIRE(history.after(2)[0].curve.size() == 2);
  CHECK(history.after(2)[0].curve[0] == 0.5);
  CHECK(std::isnan(history.after(2)[0].curve[1]));
  CHECK(history.after(2)[0].value() == 0.5);
  CHECK(history.after(1)[1].ended == State::kFail);
  history.add({{"x", 3.0}});
  history.pop();
  CHECK(history.after(2).size() == 2);
}

TEST_CASE("trials of a method that learns are drawn when slots want them") {
  StudyFixture study(learning_config(20), Kept::kInFile);
  study.config.width = 4;
  study.config.space.pop_back();  // hidden: one partition
  study.config.shape_changing.clear();
  std::size_t most_unbegun = 0;
  study.world.after_epochs = [&](int) {
    const std::vector<Trial> all = study.trials();
    const auto unbegun = std::count_if(all.begin(), all.end(), [](const Trial& t) { return t.epochs.empty(); });
    most_unbegun = std::max(most_unbegun, static_cast<std::size_t>(unbegun));
  };
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 20);
  CHECK(most_unbegun <= 4);
  CHECK(views(study) == std::set<int>{0, 5, 10, 15, 20});
  check_redraws(study, 20);
}

TEST_CASE("where nobody is stopped, arrays that are opened are filled by draws for them, which see the more results") {
  const std::string method = GENERATE(values<std::string>({"tpe", "gp", "cmaes", "evolution"}));
  INFO(method);
  StudyConfig config = learning_config(48, "none", method);
  config.space.back() = choice("hidden", {std::int64_t{16}, std::int64_t{32}, std::int64_t{64}, std::int64_t{128}});
  config.width = 8;
  StudyFixture study(config);
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 48);
  // Of four partitions, an array of each draw's own would begin with some thirty draws that have seen nothing.
  const std::vector<Trial> all = study.trials();
  CHECK(std::count_if(all.begin(), all.end(), [](const Trial& t) { return t.seen_rounds == 0; }) <= 16);
  std::map<int, int> slots;  // by round
  for (const storage::OccupancyRecord& place : study.open()->occupancy("digits")) ++slots[place.round];
  for (const auto& [round, occupied] : slots) {
    INFO("round " << round);
    CHECK((occupied == 8 || round >= *views(study).rbegin()));  // there are draws left
  }
  std::set<std::string> partitions;
  for (const Trial& trial : all) partitions.insert(study.config.partition(trial.params));
  CHECK(partitions.size() == 4);
  check_redraws(study, 48);
}

TEST_CASE("the store has nothing of the kind for methods that do not learn") {
  StudyFixture study(random_config(6));
  CHECK(study.run().stopped_by == 0);
  for (const Trial& trial : study.trials()) {
    CHECK_FALSE(trial.seen_rounds);
    CHECK_FALSE(trial.ended_round);
  }
  check_redraws(study, 0);
}

TEST_CASE("a study that learns, stopped again and again on one device, asks what an undisturbed one asks") {
  struct Case {
    const char* stopping;
    int width, rounds;
    bool keep_checkpoints, select_best;
  };
  const Case c =
      GENERATE(Case{"none", 3, 1, true, false}, Case{"none", 5, 11, false, false}, Case{"none", 1, 17, false, true},
               Case{"median", 4, 13, false, false}, Case{"asha", 4, 11, false, true}, Case{"asha", 6, 3, true, false});
  INFO(c.stopping << ", width " << c.width << ", " << c.rounds << " rounds a run");
  StudyConfig config = learning_config(26, c.stopping);
  config.width = c.width;
  config.select_best = c.select_best;
  StudyFixture undisturbed(config), stopped(config);
  CHECK(undisturbed.run().stopped_by == 0);
  // Where all states are lost, a run is long enough to get further than it has to catch up.
  CHECK(stopped.run_in_pieces(c.rounds, 1, c.keep_checkpoints) > 1);
  CHECK(stopped.table() == undisturbed.table());
  check_redraws(stopped, 26);
}

TEST_CASE("where the best epoch is selected, draws follow from the best values so far") {
  const std::string method = GENERATE(values<std::string>({"tpe", "gp", "hyperband", "bohb", "dehb", "freeze_thaw"}));
  INFO(method);
  StudyConfig config = learning_config(60, "none", method);
  config.method_options.hyperband = {1, 9, 3};
  config.method_options.freeze_thaw = {.max_epochs = 9, .startup_trials = 4, .slots = 4};
  config.width = 4;
  StudyFixture shows(config);
  shows.world.shows_best = true;
  config.select_best = true;
  StudyFixture selects(config);
  CHECK(shows.run().stopped_by == 0);
  CHECK(selects.run().stopped_by == 0);
  REQUIRE(selects.trials().size() == shows.trials().size());
  for (std::size_t i = 0; i < selects.trials().size(); ++i) {
    INFO("trial " << i);
    CHECK(selects.trials()[i].params == shows.trials()[i].params);
  }
}

TEST_CASE("a study of any method that learns, stopped a hundred times, asks what an undisturbed one asks") {
  const std::string method = GENERATE(values<std::string>({"tpe", "gp", "cmaes", "evolution"}));
  INFO(method);
  StudyConfig config = learning_config(110, "asha", method);
  config.width = 1;  // so that a round trains one epoch of one trial, and each run is stopped after one round
  StudyFixture undisturbed(config), stopped(config);
  CHECK(undisturbed.run().stopped_by == 0);
  CHECK(stopped.run_in_pieces(1, 1, true) >= 100);
  CHECK(stopped.table() == undisturbed.table());
  check_redraws(stopped, 110);
}

TEST_CASE("on several devices every draw can be made again from the store") {
  const int devices = GENERATE(2, 3);
  const bool disturbed = GENERATE(false, true);
  const std::string method = GENERATE(values<std::string>({"tpe", "gp", "cmaes", "evolution"}));
  const std::string stopping = GENERATE(values<std::string>({"asha", "none"}));
  INFO(method << " with " << stopping << " on " << devices << " devices" << (disturbed ? ", disturbed" : ""));
  StudyConfig config = learning_config(40, stopping, method);
  config.width = 3;
  StudyFixture study(config);
  if (disturbed) {
    CHECK(study.run_in_pieces(9, devices, true) > 1);
  } else {
    CHECK(study.run(devices).stopped_by == 0);
  }
  check_redraws(study, 40);
}

TEST_CASE("trials of an earlier study are kept with the study, and every draw sees them") {
  StudyFixture earlier(learning_config(12), Kept::kInMemory);
  CHECK(earlier.run().stopped_by == 0);
  search::History prior;
  for (const Trial& trial : earlier.trials()) {
    prior.push_back({trial.params, {}, trial.values, trial.state});
    for (const trials::EpochRecord& record : trial.epochs)
      prior.back().curve.push_back(record.metrics.at("val_accuracy"));
  }
  prior.push_back({prior.front().params, {std::nan("")}, {}, State::kFail});
  StudyConfig config = learning_config(20, "median");
  config.width = 4;
  config.seed = 2;
  StudyFixture undisturbed(config, Kept::kInFile), stopped(config, Kept::kInFile), without(config);
  undisturbed.prior = stopped.prior = prior;
  CHECK(undisturbed.run().stopped_by == 0);
  CHECK(stopped.run_in_pieces(5, 1, true) > 1);
  CHECK(without.run().stopped_by == 0);
  const auto drawn = [](StudyFixture& study) {  // the files lie elsewhere; all else is the same
    std::vector<trials::Params> all;
    for (const Trial& trial : study.trials()) all.push_back(trial.params);
    return all;
  };
  CHECK(drawn(stopped) == drawn(undisturbed));
  CHECK(stopped.table() == undisturbed.table());
  CHECK(drawn(undisturbed) != drawn(without));
  check_redraws(stopped, 20);
  const search::History kept = prior_of(*stopped.open()->find(config.study));
  REQUIRE(kept.size() == prior.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(kept[i].params == prior[i].params);
    CHECK(kept[i].values == prior[i].values);
    CHECK(kept[i].ended == prior[i].ended);
    CHECK(kept[i].curve.size() == prior[i].curve.size());
  }
  CHECK(std::isnan(kept.back().curve.at(0)));
}

TEST_CASE("freeze_thaw picks for the slots of all devices, as wide as arrays are") {
  // How many trials are in slots on average, once all have begun and before the first is done.
  const auto side_by_side = [](int slots, int devices, std::optional<int> width) {
    StudyConfig config = random_config(36);
    config.method = "freeze_thaw";
    config.method_options.freeze_thaw = {.max_epochs = 5, .startup_trials = 4, .slots = slots};
    config.shape_changing.clear();
    config.width = width;
    StudyFixture study(config);
    study.world.width = 4;
    study.world.partition_by = "";
    (void)study.run(devices);
    CHECK(study.count(State::kComplete) == 36);
    int sum = 0, count = 0;
    for (const Status& status : study.recorder.statuses) {
      if (status.epochs < 40 || status.epochs > 120) continue;
      sum += status.running;
      ++count;
    }
    REQUIRE(count > 0);
    return static_cast<double>(sum) / count;
  };
  CHECK(side_by_side(0, 1, std::nullopt) > 3.5);
  CHECK(side_by_side(0, 1, 6) > 5.5);
  CHECK(side_by_side(0, 4, std::nullopt) > 13);
  CHECK(side_by_side(2, 1, std::nullopt) < 3);  // `slots` says another number
  CHECK(side_by_side(4, 4, std::nullopt) < 6);
}
