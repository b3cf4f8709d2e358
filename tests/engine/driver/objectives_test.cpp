// Studies of several objectives, run with fake trainers.

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/driver/goals/best_trials.hpp"
#include "engine/driver/study/redraw.hpp"
#include "engine/driver/study/study.hpp"
#include "storage/checkpoints.hpp"
#include "study_fixture.hpp"
#include "trials/pareto.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::Goal;
using trials::State;
using trials::Trial;

namespace {

struct Study : StudyFixture {
  explicit Study(StudyConfig study_config, Kept kept = Kept::kInMemory) : StudyFixture(std::move(study_config), kept) {
    world.counts_parameters = true;
    world.diverge = {3};
  }
  std::vector<int> kept() {
    storage::StudyStates states(files, checkpoints);
    std::vector<int> numbers = states.of(storage::StateKind::kFinished).trials();
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  std::vector<int> front() { return trials::pareto_front(trials(), config.objectives).numbers(); }
};

}  // namespace

TEST_CASE("each trial has the values of its last epoch, and one that diverged has none") {
  for (const Kept kept : {Kept::kInMemory, Kept::kInFile}) {
    Study study(objectives_config("nsga2", 40), kept);
    CHECK(study.run().any_complete);
    for (const Trial& trial : study.trials()) {
      INFO("trial " << trial.number);
      if (trial.number == 3) {
        CHECK((trial.state == State::kFail));
        CHECK(trial.values.empty());
        continue;
      }
      CHECK((trial.state == State::kComplete));
      CHECK(trial.values == std::vector<double>{trial.epochs.back().metrics.at("val_accuracy"),
                                                trial.epochs.back().metrics.at(kParameterCount)});
    }
  }
}

TEST_CASE("a trial diverges by the metric of any objective") {
  Study study(objectives_config("random", 10));
  study.world.diverging_metric = kParameterCount;
  (void)study.run();
  CHECK((study.trials()[3].state == State::kFail));
  CHECK(study.trials()[3].reason == "parameters is nan at epoch 1");
}

TEST_CASE("the front's weights are kept and tested, all of them and no others") {
  Study study(objectives_config("nsga2", 60));
  study.config.keep = 1;
  (void)study.run();
  const std::vector<int> front = study.front();
  CHECK(front.size() >= 3);  // or the case shows little
  CHECK(study.kept() == front);
  for (const Trial& trial : study.trials()) {
    const bool is_on_front = std::count(front.begin(), front.end(), trial.number) > 0;
    CHECK(trial.test_metrics.empty() == !is_on_front);
  }
  CHECK(study.world.tests == static_cast<int>(front.size()));
  std::vector<int> tested;
  for (const Event& event : study.recorder.events) {
    if (const auto* test = std::get_if<Tested>(&event)) tested.push_back(test->trial);
  }
  CHECK(tested == front);
  CHECK(study.recorder.statuses.back().front == front);
  CHECK_FALSE(study.recorder.statuses.back().best);
  const std::unique_ptr<storage::Store> store = study.open();
  CHECK(is_finished(*store, study.config, *store->find("digits")));
}

TEST_CASE("a study of several objectives that is stopped again and again comes to the same end") {
  for (const char* method : {"nsga2", "random"}) {
    INFO(method);
    Study whole(objectives_config(method, 40));
    (void)whole.run();
    for (const bool keep : {true, false}) {
      Study pieces(objectives_config(method, 40), Kept::kInFile);
      CHECK(pieces.run_in_pieces(keep ? 3 : 17, 1, keep) > 1);
      CHECK(pieces.table() == whole.table());
      CHECK(pieces.kept() == whole.kept());
    }
  }
}

TEST_CASE("every draw of NSGA-II can be made again from the store") {
  Study study(objectives_config("nsga2", 40));
  (void)study.run();
  const std::unique_ptr<storage::Store> store = study.open();
  const std::vector<Redraw> redrawn = redraw(study.config, *store);
  CHECK(redrawn.size() == 40);
  for (const Redraw& one : redrawn) {
    INFO("trial " << one.number);
    CHECK(one.stored == one.drawn);
  }
}

TEST_CASE("the best trials of several objectives are a front, in whatever order they end") {
  const trials::Objectives objectives = {{"a", Goal::kMinimize}, {"b", Goal::kMaximize}};
  BestTrials best(1, objectives);
  CHECK(best.add(4, {1, 1}).empty());
  CHECK(best.add(2, {2, 2}).empty());
  CHECK(best.add(7, {3, 2}) == std::vector<int>{7});
  CHECK(best.add(1, {1, 2}) == std::vector<int>{2, 4});
  CHECK(best.add(0, {1, 2}).empty());  // as good
  CHECK(best.numbers() == std::vector<int>{0, 1});
  CHECK(best.contains(1));
  CHECK_FALSE(best.contains(2));
}
