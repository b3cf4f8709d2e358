// Reports of studies with repetitions.
#include "engine/report/configurations.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/report/report.hpp"

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;
using trials::Rank;
using trials::State;
using trials::Trial;

namespace {

// Three repetitions of four configurations: whole; better on the whole; one failed; one still runs. The last trial is
// Optuna's. Numbers are not draws: another program enqueued draw 0, as trial 3.
ReportInput study(Rank rank = Rank::kMean) {
  ReportInput input{"s", {{"val_loss", trials::Goal::kMinimize}}, {}};
  input.repetitions = {3, 1, rank};
  input.draws = {3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<double> values = {0.5, 0.7, 0.9, 0.1, 0.6, 0.5, 0.4, 0.2, 0.3, 0.9, 0.8, 0.7};
  for (int draw = 0; draw < 12; ++draw) {
    Trial trial;
    trial.number = input.draws[static_cast<std::size_t>(draw)];
    trial.params = input.repetitions.params_of({{"lr", 0.001 * (1 + draw / 3)}}, draw % 3);
    trial.state = draw == 7 ? State::kFail : draw == 11 ? State::kRunning : State::kComplete;
    if (trial.state == State::kComplete) trial.values = {values[static_cast<std::size_t>(draw)]};
    trial.epochs.push_back({1, {{"val_loss", values[static_cast<std::size_t>(draw)]}, {"train_loss", 0.5}}});
    input.trials.push_back(trial);
  }
  Trial stranger;
  stranger.number = 12;
  stranger.state = State::kComplete;
  stranger.values = {0.01};
  input.trials.push_back(stranger);
  std::sort(input.trials.begin(), input.trials.end(),
            [](const Trial& a, const Trial& b) { return a.number < b.number; });
  return input;
}

}  // namespace

TEST_CASE("configurations rank by what their trials have come to, those without a value last") {
  const ReportInput input = study();
  const std::vector<ConfigurationRow> rows = configuration_rows(input);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].configuration.index == 1);
  CHECK(rows[0].configuration.value == Approx(0.4));
  CHECK(rows[1].configuration.index == 0);
  CHECK(rows[2].configuration.index == 2);
  CHECK(std::isnan(rows[2].configuration.value));
  CHECK(rows[2].failed == 1);
  CHECK(rows[2].summary->mean == Approx(0.35));
  CHECK(rows[3].running == 1);
  CHECK(rows[3].summary->count == 2);
  CHECK(best_of(input)->number == 2);  // 0.1, the best of the best configuration; not 0.01, which is of none
  CHECK(configuration_rows(study(Rank::kMedian))[0].configuration.index == 2);  // 0.4 | 0.3 | failed
}

TEST_CASE("the table shows mean, deviation and interval") {
  const std::string table = report_table(study(), 10);
  INFO(table);
  CHECK_THAT(table, Catch::Contains("configurations: 4, each with 3 seeds; ranked by mean"));
  CHECK_THAT(table, Catch::Contains("best: val_loss 0.1 (trial 2"));
  CHECK_THAT(table, Catch::Contains("2 COMPLETE, 1 FAIL"));
  std::istringstream lines(table.substr(table.find("configuration  ")));
  std::string header, first;
  std::getline(lines, header);
  std::getline(lines, first);
  CHECK_THAT(header, Catch::Contains("deviation") && Catch::Contains("95 % from") && Catch::Contains("lr"));
  // .1, .6, .5: mean .4, deviation .264575, t of 2 degrees 4.302653: half 0.657241
  CHECK_THAT(first, Catch::Contains("0.4") && Catch::Contains("0.264575") && Catch::Contains("-0.2572") &&
                        Catch::Contains("1.0572"));
  CHECK_THAT(report_table(study(Rank::kLower), 1), Catch::Contains("ranked by lower") && Catch::Contains("(3 more;"));
}

TEST_CASE("JSON and CSV have the same numbers") {
  const json all = json::parse(report_json(study(), {}));
  CHECK(all["repetitions"] == json({{"repeat", 3}, {"folds", 1}, {"rank", "mean"}, {"confidence", 0.95}}));
  REQUIRE(all["configurations"].size() == 4);
  const json& first = all["configurations"][0];
  CHECK(first["configuration"] == 1);
  CHECK(first["trials"] == json({2, 4, 5}));
  CHECK(first["params"] == json({{"lr", 0.002}}));
  CHECK(first["mean"].get<double>() == Approx(0.4));
  CHECK(first["complete"] == 3);
  CHECK(all["configurations"][2]["value"].is_null());
  CHECK(all["best"]["number"] == 2);
  CHECK(json::parse(report_json(study(), 1))["configurations"].size() == 1);
  std::istringstream csv(report_csv(study(), {}));
  std::string line;
  std::getline(csv, line);
  CHECK_THAT(line, Catch::Contains("reason,configuration,configuration.value,configuration.mean"));
  std::getline(csv, line);
  CHECK_THAT(line, Catch::StartsWith("0,COMPLETE,0.7,") && Catch::Contains(",,0,0."));  // trial 0 is of configuration 0
  for (int i = 0; i < 12; ++i) std::getline(csv, line);
  CHECK_THAT(line, Catch::EndsWith(",,,,,,,\r"));  // Optuna's is of none
}

TEST_CASE("a study without repetitions has nothing of the kind") {
  ReportInput input = study();
  input.repetitions = {};
  CHECK(configuration_rows(input).empty());
  CHECK(configurations_text(input, 3).empty());
  CHECK(best_of(input)->number == 12);
  CHECK(report_json(input, {}).find("configurations") == std::string::npos);
  CHECK(report_csv(input, {}).find("configuration") == std::string::npos);
}
