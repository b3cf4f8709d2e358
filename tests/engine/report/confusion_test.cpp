// Confusion matrices in reports: which metrics are one, of which epoch, and how each format has it.

#include "engine/report/confusion.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

using namespace hfta;
using namespace hfta::engine;
using nlohmann::json;
using trials::State;
using trials::Trial;
using Metrics = std::map<std::string, double>;

namespace {

// "val_confusion_i_j": scale * (10 i + j).
Metrics cells(const std::string& set, int classes, double scale = 1) {
  Metrics metrics;
  for (int i = 0; i < classes; ++i) {
    for (int j = 0; j < classes; ++j) {
      metrics[set + "_confusion_" + std::to_string(i) + "_" + std::to_string(j)] = scale * (10 * i + j);
    }
  }
  return metrics;
}

Metrics joined(Metrics all, const Metrics& more) {
  all.insert(more.begin(), more.end());
  return all;
}

// Trial 4, of three epochs whose val_loss is 2, 1 and 1, and whose matrices tell them apart.
ReportInput study(int classes = 2) {
  Trial trial;
  trial.number = 4;
  trial.state = State::kComplete;
  trial.values = {1};
  for (int e = 1; e <= 3; ++e) {
    trial.epochs.push_back({e, joined({{"val_loss", e == 1 ? 2.0 : 1.0}}, cells("val", classes, e))});
  }
  trial.test_metrics = joined({{"test_loss", 0.5}}, cells("test", classes, 100));
  return {"s", {{"val_loss", trials::Goal::kMinimize}}, {trial}};
}

}  // namespace

TEST_CASE("metrics that are cells of a whole matrix become one", "[confusion]") {
  struct Case {
    const char* what;
    Metrics metrics;
    std::map<std::string, ConfusionMatrix> matrices;
    std::vector<std::string> numbers;
  };
  Metrics incomplete = cells("val", 3), far = cells("val", 2), holes = cells("val", 2);
  incomplete.erase("val_confusion_1_2");
  far["val_confusion_4294967295_0"] = 1;
  holes.erase("val_confusion_0_1");
  holes["val_confusion_99999999999999_1"] = 1;  // no index, so that no 2 x 2 cells are left
  const Case cases[] = {
      {"none", {{"val_loss", 1}}, {}, {"val_loss"}},
      {"two classes", joined({{"val_loss", 1}}, cells("val", 2)), {{"val", {{0, 1}, {10, 11}}}}, {"val_loss"}},
      {"ten classes and more", cells("val", 12), {{"val", {}}}, {}},
      {"two sets", joined(cells("val", 2), cells("test", 2)), {{"val", {}}, {"test", {}}}, {}},
      {"a missing cell",
       incomplete,
       {},
       {"val_confusion_0_0", "val_confusion_0_1", "val_confusion_0_2", "val_confusion_1_0", "val_confusion_1_1",
        "val_confusion_2_0", "val_confusion_2_1", "val_confusion_2_2"}},
      {"a cell far out",
       far,
       {},
       {"val_confusion_0_0", "val_confusion_0_1", "val_confusion_1_0", "val_confusion_1_1",
        "val_confusion_4294967295_0"}},
      {"an index beyond all",
       holes,
       {},
       {"val_confusion_0_0", "val_confusion_1_0", "val_confusion_1_1", "val_confusion_99999999999999_1"}},
      {"one class", cells("val", 1), {}, {"val_confusion_0_0"}},
      {"other names",
       {{"confusion_0_0", 1}, {"val_confusion_0", 1}, {"val_confusion_01_0", 1}},
       {},
       {"confusion_0_0", "val_confusion_0", "val_confusion_01_0"}},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const SplitMetrics found = split(c.metrics, "val_loss");
    std::vector<std::string> numbers;
    for (const auto& [name, value] : found.numbers) {
      numbers.push_back(name);
      CHECK(value == c.metrics.at(name));
    }
    CHECK(numbers == c.numbers);
    REQUIRE(found.matrices.size() == c.matrices.size());
    for (const auto& [set, matrix] : c.matrices) {
      CAPTURE(set);
      REQUIRE(found.matrices.count(set) == 1);
      if (!matrix.empty()) CHECK(found.matrices.at(set) == matrix);
    }
  }
  CHECK(split(cells("val", 12), "").matrices.at("val")[11][2] == 112);
}

TEST_CASE("a study's metric stays a number where it is a cell", "[confusion]") {
  const SplitMetrics found = split(cells("val", 2), "val_confusion_1_1");
  CHECK(found.numbers == Metrics{{"val_confusion_1_1", 11}});
  CHECK(found.matrices.at("val") == ConfusionMatrix{{0, 1}, {10, 11}});
}

TEST_CASE("a trial's matrix is that of the epoch that its value is of", "[confusion]") {
  struct Case {
    const char* what;
    bool select_best;
    std::vector<double> values;
    int epoch;
  };
  const Case cases[] = {{"the last epoch's value", false, {1}, 3},
                        {"the best epoch's: the first of equal ones", true, {1}, 2},
                        {"the best was the first", true, {2}, 1},
                        {"no epoch has the value", true, {7}, 3},
                        {"no value yet", true, {}, 3}};
  for (const Case& c : cases) {
    INFO(c.what);
    ReportInput input = study();
    input.select_best = c.select_best;
    input.trials[0].values = c.values;
    REQUIRE(valued_epoch(input, input.trials[0]) != nullptr);
    CHECK(valued_epoch(input, input.trials[0])->epoch == c.epoch);
    CHECK(confusion_of(input, input.trials[0]).at("val")[1][1] == 11 * c.epoch);
  }
  CHECK(valued_epoch(study(), Trial()) == nullptr);
  CHECK(confusion_of(study(), Trial()).empty());
}

TEST_CASE("the table shows the best trial's matrices in columns", "[confusion]") {
  ReportInput input = study();
  input.trials[0].test_metrics["test_confusion_1_0"] = 123456789;
  input.trials[0].test_metrics["test_confusion_1_1"] = std::nan("");
  CHECK_THAT(report_table(input, 5),
             Catch::Contains("  test: test_loss 0.5\n"
                             "  confusion matrix (test, epoch 3), true classes in rows, predicted ones in columns:\n"
                             "             0    1\n"
                             "  0          0  100\n"
                             "  1  123456789  nan\n"
                             "  confusion matrix (val, epoch 3), true classes in rows, predicted ones in columns:\n"
                             "      0   1\n"
                             "  0   0   3\n"
                             "  1  30  33\n"));
  input.trials[0].test_metrics = cells("test", 2);  // no other metric
  CHECK_THAT(report_table(input, 5), !Catch::Contains("test:"));
  CHECK_THAT(report_table(study(20), 5), Catch::Contains("\n  19"));
  const std::string wide = report_table(study(21), 5);
  CHECK_THAT(wide, Catch::Contains("  confusion matrix (val, epoch 3): 21 classes; --format json has it\n"));
  CHECK_THAT(wide, !Catch::Contains("\n  19") && !Catch::Contains("confusion_"));
  ReportInput untrained = study();
  untrained.trials[0].epochs.clear();
  CHECK_THAT(report_table(untrained, 5), Catch::Contains("confusion matrix (test, epoch 0)"));
  for (trials::EpochRecord& epoch : input.trials[0].epochs) epoch.metrics = {{"val_loss", 1}};
  input.trials[0].test_metrics.clear();
  CHECK_THAT(report_table(input, 5), !Catch::Contains("confusion"));
}

TEST_CASE("JSON has a matrix for each trial, and of the best one that of the test set", "[confusion]") {
  ReportInput input = study();
  input.trials[0].epochs.back().metrics["val_confusion_0_1"] = std::nan("");
  const json report = json::parse(report_json(input, {}));
  CHECK(report["trials"][0]["confusion_matrix"] == json::parse(R"({"val": [[0.0, null], [30.0, 33.0]]})"));
  CHECK(report["best"]["confusion_matrix"] ==
        json::parse(R"({"test": [[0.0, 100.0], [1000.0, 1100.0]], "val": [[0.0, null], [30.0, 33.0]]})"));
  CHECK(report["trials"][0]["metrics"] == json::parse(R"({"val_loss": 1.0})"));
  CHECK(report["best"]["metrics"] == json::parse(R"({"test_loss": 0.5, "val_loss": 1.0})"));
  for (trials::EpochRecord& epoch : input.trials[0].epochs) epoch.metrics = {{"val_loss", 1}};
  CHECK_FALSE(json::parse(report_json(input, {}))["trials"][0].contains("confusion_matrix"));
}

TEST_CASE("CSV has a matrix in one cell", "[confusion]") {
  ReportInput input = study();
  Trial other;
  other.number = 5;
  input.trials.push_back(other);
  CHECK(report_csv(input, {}) ==
        "number,state,value,epochs,duration_s,metrics.val_loss,confusion_matrix.val,reason\r\n"
        "4,COMPLETE,1,3,,1,\"[[0,3],[30,33]]\",\r\n"
        "5,RUNNING,,0,,,,\r\n");
}
