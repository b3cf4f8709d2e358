// Reports of made-up studies: order, exactness, and names that were meant to break them.

#include "engine/report/report.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/report/columns.hpp"
#include "engine/report/words.hpp"

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;
using trials::State;
using trials::Trial;

namespace {

Trial made(int number, State state, std::optional<double> value, int epochs = 1) {
  Trial trial;
  trial.number = number;
  trial.state = state;
  if (value) trial.values = {*value};
  for (int e = 1; e <= epochs; ++e) trial.epochs.push_back({e, {{"val_loss", value.value_or(9)}, {"train_loss", 0.5}}});
  return trial;
}

ReportInput study(std::vector<Trial> trials, trials::Goal goal = trials::Goal::kMinimize) {
  return {"s", {{"val_loss", goal}}, std::move(trials), {}};
}

std::vector<int> order(const std::vector<Trial>& all, trials::Goal goal) {
  std::vector<int> numbers;
  for (const Trial* trial : ranked(all, {{"val_loss", goal}})) numbers.push_back(trial->number);
  return numbers;
}

}  // namespace

TEST_CASE("trials rank by state, then value, then number; what is not a number ranks last") {
  const double nan = std::nan("");
  const std::vector<Trial> all = {made(0, State::kFail, {}),       made(1, State::kPruned, 0.1),
                                  made(2, State::kComplete, 0.5),  made(3, State::kRunning, {}, 0),
                                  made(4, State::kComplete, 0.25), made(5, State::kPruned, nan),
                                  made(6, State::kComplete, 0.5),  made(7, State::kPruned, 0.05),
                                  made(8, State::kWaiting, {}),    made(9, State::kComplete, nan)};
  CHECK(order(all, trials::Goal::kMinimize) == std::vector<int>{4, 2, 6, 9, 3, 7, 1, 5, 8, 0});
  CHECK(order(all, trials::Goal::kMaximize) == std::vector<int>{2, 6, 4, 9, 3, 1, 7, 5, 8, 0});
}

TEST_CASE("trials that violate constraints rank behind those of their state") {
  std::vector<Trial> all = {made(0, State::kComplete, 0.1), made(1, State::kComplete, 0.5),
                            made(2, State::kPruned, 0.2)};
  all[0].feasible = false;
  CHECK(order(all, trials::Goal::kMinimize) == std::vector<int>{1, 0, 2});
  CHECK_THAT(report_table(study({all[0]}), 1),
             Catch::Contains("best: none, no COMPLETE trial meets its constraints\n"));
}

TEST_CASE("running trials rank by their last value, and show it") {
  std::vector<Trial> all = {made(0, State::kRunning, {}, 2), made(1, State::kRunning, {}, 1),
                            made(2, State::kRunning, {}, 0), made(3, State::kPruned, 0.1)};
  all[0].epochs.back().metrics["val_loss"] = 0.5;
  all[1].epochs.back().metrics["val_loss"] = 0.25;
  CHECK(order(all, trials::Goal::kMinimize) == std::vector<int>{1, 0, 2, 3});
  CHECK(order(all, trials::Goal::kMaximize) == std::vector<int>{0, 1, 2, 3});
  const std::string table = report_table(study(all), 4);
  CHECK(table.find("0.25") < table.find("0.5 "));
  CHECK(json::parse(report_json(study(all), 2))["trials"][0]["number"] == 1);
}

TEST_CASE("a report says whether a runner lives") {
  ReportInput input = study({made(0, State::kRunning, {}, 1)});
  CHECK(report_table(input, 1).find("runner") == std::string::npos);
  CHECK(json::parse(report_json(input, 1))["runner"].is_null());
  input.runner = {"process 7 on host a\x1b[2J", true, 0.4};
  CHECK(report_table(input, 1).find("runner: process 7 on host a\\x1b[2J, alive, last heartbeat 0.4 s ago\n") !=
        std::string::npos);
  CHECK(json::parse(report_json(input, 1))["runner"]["alive"] == true);
  input.runner = {"process 7 on host a", false, 75};
  CHECK(report_table(input, 1).find(", not alive, last heartbeat 1:15 ago\n") != std::string::npos);
  input.runner = {"process 7 on host a", false, {}};
  CHECK(report_table(input, 1).find("runner: none; the last was process 7 on host a\n") != std::string::npos);
}

TEST_CASE("numbers read back exactly from JSON and CSV") {
  const double values[] = {0.1,
                           1.0 / 3,
                           1e-300,
                           -0.0,
                           std::numeric_limits<double>::denorm_min(),
                           1e17 + 2,
                           std::numeric_limits<double>::max(),
                           5};
  for (const double value : values) {
    Trial trial = made(0, State::kComplete, value);
    trial.params = {{"x", value}, {"i", std::int64_t{9007199254740993}}};
    const ReportInput input = study({trial});
    const json object = json::parse(report_json(input, {}));
    CHECK(object["best"]["value"].get<double>() == value);
    CHECK(object["trials"][0]["params"]["x"].get<double>() == value);
    CHECK(object["trials"][0]["params"]["i"].get<std::int64_t>() == 9007199254740993);
    CHECK(object["trials"][0]["metrics"]["val_loss"].get<double>() == value);
    const std::string text = report_csv(input, {});
    const std::string row = text.substr(text.find('\n') + 1);
    const std::string cell = row.substr(row.find(',', 2) + 1);
    CHECK(std::strtod(cell.c_str(), nullptr) == value);
  }
}

TEST_CASE("what is not finite or absent is null in JSON") {
  Trial failed = made(0, State::kFail, {}, 1);
  failed.epochs[0].metrics = {{"val_loss", std::nan("")}, {"train_loss", HUGE_VAL}};
  failed.params = {{"n", std::monostate{}}, {"x", -HUGE_VAL}, {"b", true}, {"w", std::string("word")}};
  const json object = json::parse(report_json(study({failed, made(1, State::kRunning, {}, 0)}), {}));
  CHECK(object["best"].is_null());
  const json& trial = object["trials"][0];
  CHECK(trial["value"].is_null());
  CHECK(trial["duration_s"].is_null());
  CHECK_FALSE(trial.contains("copies"));
  CHECK(trial["metrics"]["val_loss"].is_null());
  CHECK(trial["metrics"]["train_loss"].is_null());
  CHECK(trial["params"]["n"].is_null());
  CHECK(trial["params"]["x"].is_null());
  CHECK(trial["params"]["b"] == true);
  CHECK(trial["params"]["w"] == "word");
  CHECK(object["trials"][1]["epochs"] == 0);
  CHECK(object["trials"][1]["metrics"] == json::object());
  CHECK(object["counts"] == json({{"FAIL", 1}, {"RUNNING", 1}}));
}

TEST_CASE("parameters are those that a trial was trained with last, and JSON has what it was drawn with") {
  Trial trial = made(3, State::kComplete, 0.5);
  trial.params = {{"lr", 0.1}};
  trial.copies = {{2, 5, {{"lr", 0.25}}}, {4, 7, {{"lr", 0.75}}}};
  const ReportInput input = study({trial, made(5, State::kFail, {}, 1)});
  const json object = json::parse(report_json(input, {}));
  CHECK(object["trials"][0]["params"]["lr"] == 0.75);
  CHECK(object["best"]["params"]["lr"] == 0.75);
  CHECK(object["trials"][0]["drawn"]["lr"] == 0.1);
  CHECK(object["trials"][0]["copies"] ==
        json::parse(R"([{"epoch":2,"source":5,"params":{"lr":0.25}},{"epoch":4,"source":7,"params":{"lr":0.75}}])"));
  CHECK_FALSE(object["trials"][1].contains("drawn"));
  CHECK_THAT(report_csv(input, {}), Catch::Contains("0.75") && !Catch::Contains("0.1"));
  CHECK_THAT(report_table(input, 5), Catch::Contains("lr=0.75"));
}

TEST_CASE("a clock that jumped back makes no negative duration") {
  Trial trial = made(0, State::kComplete, 1.0);
  trial.started = trials::UtcTime(std::chrono::microseconds(5'000'000));
  trial.completed = trials::UtcTime(std::chrono::microseconds(2'500'000));
  CHECK(json::parse(report_json(study({trial}), {}))["trials"][0]["duration_s"] == 0.0);
  trial.completed = trials::UtcTime(std::chrono::microseconds(6'250'000));
  CHECK(json::parse(report_json(study({trial}), {}))["trials"][0]["duration_s"] == 1.25);
}

TEST_CASE("CSV quotes what needs it, and keeps its columns where trials differ") {
  Trial first = made(0, State::kComplete, 1.0);
  first.params = {{"a,b", std::string("say \"hi\"")}, {"plain", std::int64_t{3}}};
  Trial second = made(1, State::kFail, {}, 0);
  second.params = {{"other", std::string("line\nbreak")}};
  second.reason = "train_loss is nan, at epoch 1";
  const std::string text = report_csv(study({first, second}), {});
  CHECK(text ==
        "number,state,value,epochs,duration_s,\"params.a,b\",params.plain,params.other,metrics.train_loss,"
        "metrics.val_loss,reason\r\n"
        "0,COMPLETE,1,1,,\"say \"\"hi\"\"\",3,,0.5,1,\r\n"
        "1,FAIL,,0,,,,line\\x0abreak,,,\"train_loss is nan, at epoch 1\"\r\n");
}

TEST_CASE("hostile names reach no terminal, and JSON stays JSON") {
  Trial trial = made(0, State::kComplete, 1.0);
  trial.params = {{"p\x1b[2J", std::string("v\x1b]0;x\x07")}, {"bad\xff", std::string("\xc3\x28")}};
  trial.reason = "r\x1b";
  trial.test_metrics = {{"test\x1b_loss", 1.0}};
  ReportInput input = study({trial});
  input.study = "s\x1b[H";
  input.objectives.front().metric = "m\x1b";
  CHECK(report_table(input, 10).find('\x1b') == std::string::npos);
  CHECK(json::accept(report_json(input, {})));
  storage::StudySummary summary;
  summary.name = input.study;
  summary.objectives.front().metric = input.objectives.front().metric;
  CHECK(studies_table({summary}).find('\x1b') == std::string::npos);
  CHECK(json::accept(studies_json({summary})));
}

TEST_CASE("the table names the best, its tests, the failures and how many are not shown") {
  Trial best = made(2, State::kComplete, 0.25, 9);
  best.params = {{"lr", 0.0123456789}};
  best.test_metrics = {{"test_loss", 0.3}};
  std::vector<Trial> all = {best};
  for (int i = 3; i < 9; ++i) {
    all.push_back(made(i, State::kFail, {}));
    all.back().reason = "train_loss is nan at epoch " + std::to_string(i);
  }
  ReportInput input = study(all);
  input.arrays = {{0, "cpu:0", "", 4, 1, 1, "{}"}, {1, "cpu:1", "", 4, 1, 1, "{}"}};
  input.rounds = {{0, 0, 4, 4, 1.5}, {1, 1, 4, 4, 3.5}, {2, 0, 4, 4, 1.0}};  // the second device is the busiest
  const std::string text = report_table(input, 3);
  for (const char* part :
       {"trials: 7 (1 COMPLETE, 6 FAIL); 15 trial-epochs, trained for 3.5 s", "train_loss is nan (6)",
        "best: val_loss 0.25 (trial 2, 9 epochs)", "lr=0.01235", "test_loss 0.3", "(4 more;"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
  CHECK_THAT(report_table(study({}), 10), Catch::Contains("trials: 0 (none)") && Catch::Contains("best: none"));
}

TEST_CASE("while trials run, the table tells the best so far beside the best COMPLETE one") {
  struct Case {
    const char* what;
    std::vector<Trial> trials;
    const char* told;  // "" for nothing
  };
  const auto running = [](int number, double value) {
    Trial trial = made(number, State::kRunning, value, 3);
    trial.values.clear();
    return trial;
  };
  const Case cases[] = {
      {"a running one leads",
       {made(0, State::kComplete, 0.5), running(1, 0.25)},
       "best so far: val_loss 0.25 (trial 1, RUNNING, 3 epochs)"},
      {"none is complete", {running(0, 0.75), running(1, 0.5), running(2, 0.5)}, "best so far: val_loss 0.5 (trial 1,"},
      {"a pruned one leads",
       {made(0, State::kPruned, 0.1), running(1, 0.5)},
       "best so far: val_loss 0.1 (trial 0, PRU"},
      {"the complete one leads", {made(0, State::kComplete, 0.5), running(1, 0.5)}, ""},
      {"not a number", {running(0, std::nan("")), made(1, State::kRunning, {}, 0)}, ""},
      {"a failed one never leads", {made(0, State::kFail, 0.1), made(1, State::kRunning, {}, 0)}, ""},
      {"nothing runs", {made(0, State::kPruned, 0.1), made(1, State::kComplete, 0.5)}, ""},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const std::string text = report_table(study(c.trials), 5);
    CHECK((text.find("best so far") != std::string::npos) == (*c.told != '\0'));
    CHECK_THAT(text, Catch::Contains(c.told));
  }
}

TEST_CASE("columns line up, numbers to the right, by characters and not bytes") {
  CHECK(in_columns({"n", "word", "v"}, {{"1", "aé", "0.5"}, {"10", "b", "-"}}) ==
        " n  word    v\n"
        " 1  aé    0.5\n"
        "10  b       -\n");
}

TEST_CASE("durations for people") {
  struct Case {
    double seconds;
    const char* text;
  };
  const Case cases[] = {{0, "0.0 s"},        {8.24, "8.2 s"},   {59.94, "59.9 s"}, {59.96, "1:00"},    {187, "3:07"},
                        {3599.6, "1:00:00"}, {7387, "2:03:07"}, {-1, "?"},         {std::nan(""), "?"}};
  for (const Case& c : cases) CHECK(duration_text(c.seconds) == c.text);
}
