// Reports of studies of several objectives.

#include "engine/report/front.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;
using trials::Goal;
using trials::State;
using trials::Trial;

namespace {

Trial made(int number, State state, const std::vector<double>& values) {
  Trial trial;
  trial.number = number;
  trial.state = state;
  if (values.empty()) return trial;
  trial.epochs = {{1, {{"val_accuracy", values[0]}, {"parameters", values[1]}, {"train_loss", 0.5}}}};
  if (state == State::kRunning) return trial;
  trial.values = values;
  return trial;
}

// The front: 0, 1 and 4. Behind it 2, then 5.
ReportInput study() {
  ReportInput input{
      "s",
      {{"val_accuracy", Goal::kMaximize}, {"parameters", Goal::kMinimize}},
      {made(0, State::kComplete, {0.875, 500}), made(1, State::kComplete, {0.75, 100}),
       made(2, State::kComplete, {0.75, 200}), made(3, State::kFail, {}), made(4, State::kComplete, {0.9375, 900}),
       made(5, State::kComplete, {0.5, 1000}), made(6, State::kRunning, {0.99, 1})}};
  input.trials[1].test_metrics = {{"test_accuracy", 0.625}};
  return input;
}

std::vector<int> numbers(const std::vector<const Trial*>& trials) {
  std::vector<int> all;
  for (const Trial* trial : trials) all.push_back(trial->number);
  return all;
}

}  // namespace

TEST_CASE("a study's front, and its hypervolume from the worst values or from a reference that is told") {
  ReportInput input = study();
  const std::optional<FrontSummary> front = front_of(input);
  REQUIRE(front);
  CHECK(numbers(front->trials) == std::vector<int>{0, 1, 4});
  CHECK(front->reference == std::vector<double>{0.5, 1000});
  // 0.25 * 900, and what 0 has beyond 1, and 4 beyond both.
  CHECK(front->hypervolume == 0.25 * 900 + 0.125 * 500 + 0.0625 * 100);
  input.reference = {0.75, 600};
  CHECK(front_of(input)->hypervolume == 0.125 * 100);
  CHECK(front_of(input)->reference == std::vector<double>{0.75, 600});
  CHECK(front_text(input) ==
        "Pareto front: 3 trials, hypervolume 12.5 (reference: val_accuracy 0.75, parameters 600)\n");

  input.trials = {made(0, State::kFail, {}), made(1, State::kRunning, {0.5, 10})};
  CHECK_FALSE(front_of(input));
  CHECK(front_text(input) == "Pareto front: none, no trial is COMPLETE\n");
  input.trials = {made(0, State::kComplete, {0.5, 10})};
  input.trials[0].feasible = false;
  CHECK(front_text(input) == "Pareto front: none, no COMPLETE trial meets its constraints\n");
  // As in Optuna, an infinite value is better than any other; the reference is finite.
  constexpr double kInf = std::numeric_limits<double>::infinity();
  input.reference.reset();
  input.trials = {made(0, State::kComplete, {0.5, 10}), made(1, State::kComplete, {kInf, 20}),
                  made(2, State::kComplete, {0.75, 30}), made(3, State::kComplete, {0.25, 5})};
  CHECK(numbers(front_of(input)->trials) == std::vector<int>{0, 1, 3});
  CHECK(front_of(input)->reference == std::vector<double>{0.25, 30});
  CHECK(front_of(input)->hypervolume == kInf);
  input.objectives.resize(1);
  CHECK_FALSE(front_of(input));
  CHECK(front_text(input).empty());
}

TEST_CASE("trials of several objectives rank by state, front and crowding distance") {
  const ReportInput input = study();
  // The ends of the front are the least crowded; then 0 between them, the fronts behind, the running one, the failed
  // one.
  CHECK(numbers(ranked(input.trials, input.objectives)) == std::vector<int>{1, 4, 0, 2, 5, 6, 3});
  const auto places = front_places(input.trials, input.objectives);
  CHECK(places[0]->front == 0);
  CHECK(places[2]->front == 1);
  CHECK(places[5]->front == 2);
  CHECK_FALSE(places[3]);
  CHECK_FALSE(places[6]);
}

TEST_CASE("the table has a column per objective, and the front in place of the best trial") {
  const std::string table = report_table(study(), 10);
  CHECK_THAT(table, Catch::Contains("study s: maximize val_accuracy, minimize parameters\n") &&
                        Catch::Contains("Pareto front: 3 trials, hypervolume ") && !Catch::Contains("best"));
  CHECK_THAT(table, Catch::Contains("trial  state     val_accuracy  parameters  front  epochs"));
  CHECK_THAT(table, Catch::Contains("6  RUNNING           0.99           1      -       1"));
}

TEST_CASE("JSON has objectives, front and all values; CSV a column for each") {
  const ReportInput input = study();
  const json all = json::parse(report_json(input, {}));
  CHECK(all["objectives"] == json::parse(R"([{"metric": "val_accuracy", "direction": "maximize"},
                                             {"metric": "parameters", "direction": "minimize"}])"));
  CHECK(all["front"]["trials"] == json({0, 1, 4}));
  CHECK(all["front"]["hypervolume"] == 293.75);
  CHECK(all["front"]["reference"] == json({0.5, 1000.0}));
  CHECK(all["best"].is_null());
  CHECK(all["trials"][0]["values"] == json({0.875, 500.0}));
  CHECK(all["trials"][3]["values"].is_null());
  CHECK(all["trials"][1]["metrics"]["test_accuracy"] == 0.625);
  CHECK(json::parse(report_json(input, 2))["trials"][0]["number"] == 1);
  const std::string csv = report_csv(input, {});
  CHECK(csv.substr(0, csv.find('\r')) ==
        "number,state,values.val_accuracy,values.parameters,front,epochs,duration_s,metrics.parameters,"
        "metrics.test_accuracy,metrics.train_loss,metrics.val_accuracy,reason");
  CHECK_THAT(csv, Catch::Contains("\n0,COMPLETE,0.875,500,0,1,") && Catch::Contains("\n2,COMPLETE,0.75,200,1,1,") &&
                      Catch::Contains("\n3,FAIL,,,,0,"));
}

TEST_CASE("a report of one objective has no word of others") {
  ReportInput input = study();
  input.objectives.resize(1);
  for (Trial& trial : input.trials) trial.values.resize(std::min<std::size_t>(1, trial.values.size()));
  const json all = json::parse(report_json(input, {}));
  for (const char* key : {"objectives", "front"}) CHECK_FALSE(all.contains(key));
  CHECK_FALSE(all["trials"][0].contains("values"));
  CHECK_THAT(report_table(input, 10), Catch::Contains("best: val_accuracy") && !Catch::Contains("front"));
}

TEST_CASE("what another program left is no point: too few values, too many, NaN") {
  ReportInput input = study();
  input.trials[0].values.resize(1);
  input.trials[1].values.push_back(1);
  input.trials[4].values[1] = std::nan("");
  CHECK(numbers(front_of(input)->trials) == std::vector<int>{2});
  CHECK(json::accept(report_json(input, {})));
  CHECK_FALSE(report_csv(input, {}).empty());
  CHECK_FALSE(report_table(input, 10).empty());
}

TEST_CASE("a reference is one finite number per objective") {
  const trials::Objectives two = study().objectives;
  CHECK(reference_from("0.5,1e3", two) == std::vector<double>{0.5, 1000});
  CHECK(reference_from("-0.5,0", two) == std::vector<double>{-0.5, 0});
  struct Case {
    const char* text;
    const char* words;
  };
  for (const Case& c : std::vector<Case>{{"0.5", "found 1 number, wanted 2"},
                                         {"1,2,3", "found 3 numbers, wanted 2"},
                                         {"", "found 0 numbers, wanted 2"},
                                         {"1,x\x1b", "found 'x\\x1b', wanted a number"},
                                         {"1,nan", "found 'nan', wanted a number"},
                                         {"1,inf", "found 'inf', wanted a number"},
                                         {"1,", "found 1 number, wanted 2"}}) {
    INFO(c.text);
    CHECK_THROWS_WITH(reference_from(c.text, two), Catch::Contains("--reference: ") && Catch::Contains(c.words));
  }
  CHECK_THROWS_WITH(reference_from("1", {two.front()}), Catch::Contains("a study of one objective"));
}
