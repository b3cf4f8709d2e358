// The table of metrics is whole, and names what is recorded. That the definitions are scikit-learn's is for
// scikit_learn_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "fusion/metrics/table/rows.hpp"
#include "tests/fusion/metrics/every_spec.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion {
namespace {

MetricSpec spec_of(const char* name, Average average = Average::kMacro, int k = 5) {
  MetricSpec spec;
  spec.name = name;
  spec.average = average;
  spec.k = k;
  return spec;
}

std::vector<std::string> default_names(OutputKind kind) {
  std::vector<std::string> names;
  for (const MetricSpec& spec : default_metrics(kind)) names.push_back(spec.name);
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// A row of docs/metrics.md.
std::string documented(const MetricInfo& info) {
  std::vector<std::string> kinds, options;
  for (const OutputKind kind : info.takes) kinds.emplace_back(name_of(kind));
  if (info.takes == kinds_of_classes()) kinds = {"all but values"};
  for (const MetricOption& option : info.options) {
    if (std::holds_alternative<int MetricSpec::*>(option.field)) {
      options.push_back("`" + std::string(option.name) + "`: at least " + std::to_string(option.least) + ", default " +
                        std::to_string(MetricSpec().*std::get<int MetricSpec::*>(option.field)));
      continue;
    }
    std::vector<std::string> averages;
    for (const Average average : option.averages) averages.emplace_back(name_of(average));
    options.push_back("`" + std::string(option.name) + "`: " + joined(averages));
  }
  const std::string better = info.larger_is_better ? *info.larger_is_better ? "larger" : "smaller" : "";
  return "| `" + std::string(info.name) + "` | " + info.sentence + " | " + joined(kinds) + " | " + better + " | " +
         joined(options) + " |";
}

}  // namespace

TEST_CASE("every metric is in the table under its own name, with all that it needs") {
  std::set<std::string> names;
  for (const MetricRow& row : metric_rows()) {
    CAPTURE(row.info.name);
    CHECK(names.insert(row.info.name).second);
    CHECK(find_metric(row.info.name)->name == std::string(row.info.name));
    CHECK(row.values != nullptr);
    CHECK_FALSE(row.info.takes.empty());
    CHECK(std::is_sorted(row.info.takes.begin(), row.info.takes.end()));
    CHECK(!row.reads.empty());
    const bool curves = std::count(row.reads.begin(), row.reads.end(), Statistic::kCurves) > 0;
    CHECK(row.info.keeps_outputs == curves);
  }
  CHECK(names.size() == metrics().size());
  CHECK(find_metric("loss") == nullptr);
}

TEST_CASE("every statistic is read by a metric") {
  for (int i = 0; i <= static_cast<int>(Statistic::kLast); ++i) {
    const auto reads = [&](const MetricRow& row) {
      return std::count(row.reads.begin(), row.reads.end(), static_cast<Statistic>(i)) > 0;
    };
    CAPTURE(i);
    CHECK(std::any_of(metric_rows().begin(), metric_rows().end(), reads));
  }
}

TEST_CASE("the metrics that are taken by themselves") {
  CHECK(default_names(OutputKind::kValue) == std::vector<std::string>{"mse", "mae", "r2"});
  for (const OutputKind kind : kinds_of_classes()) CHECK(default_names(kind) == std::vector<std::string>{"accuracy"});
}

TEST_CASE("recorded names") {
  struct Case {
    MetricSpec spec;
    std::vector<int> indices;
    std::string name;
  };
  const std::vector<Case> cases = {
      {spec_of("accuracy"), {}, "accuracy"},
      {spec_of("top_k"), {}, "top_5"},
      {spec_of("top_k", Average::kMacro, 10), {}, "top_10"},
      {spec_of("f1"), {}, "f1"},
      {spec_of("f1", Average::kMicro), {}, "f1_micro"},
      {spec_of("auroc", Average::kWeighted), {}, "auroc_weighted"},
      {spec_of("f1", Average::kNone), {12}, "f1_12"},
      {spec_of("confusion_matrix"), {0, 11}, "confusion_0_11"},
      {spec_of("balanced_accuracy", Average::kNone), {}, "balanced_accuracy"},  // reads no average
  };
  for (const Case& one : cases) {
    CAPTURE(one.name);
    CHECK(recorded_name(one.spec, one.indices) == one.name);
    CHECK(index_count(one.spec) == static_cast<int>(one.indices.size()));
    for (const Case& other : cases) CHECK(gives(other.spec, one.name) == (&other == &one));
  }
}

TEST_CASE("names that are not recorded") {
  const MetricSpec each = spec_of("f1", Average::kNone), pairs = spec_of("confusion_matrix");
  for (const char* name : {"f1", "f1_", "f1_x", "f1_01", "f1_1_", "f1_1_2", "f1_-1", "f1_ 1", "f1_micro", "f11", ""}) {
    CAPTURE(name);
    CHECK_FALSE(gives(each, name));
  }
  CHECK(gives(each, "f1_0"));
  CHECK(gives(each, "f1_4096"));
  for (const char* name : {"confusion_1", "confusion_0_1_2", "confusion", "confusion_matrix_0_1", "confusion_00_1"}) {
    CAPTURE(name);
    CHECK_FALSE(gives(pairs, name));
  }
  CHECK_FALSE(gives(spec_of("top_k"), "top_k"));
  CHECK_FALSE(gives(spec_of("f1"), "f1_0"));
}

TEST_CASE("no two metrics record the same name") {
  for (const OutputKind kind : {OutputKind::kClassScores, OutputKind::kLogit, OutputKind::kValue}) {
    const std::vector<MetricSpec> specs = testing::every_spec(kind);
    for (const MetricSpec& one : specs) {
      const std::string name = recorded_name(one, std::vector<int>(static_cast<std::size_t>(index_count(one)), 3));
      CAPTURE(name);
      CHECK(std::count_if(specs.begin(), specs.end(), [&](const MetricSpec& spec) { return gives(spec, name); }) == 1);
    }
  }
}

TEST_CASE("a metric that is not in the table is an error") {
  CHECK_THROWS_AS(recorded_name(spec_of("acuracy")), Error);
  CHECK_THROWS_AS(gives(spec_of(""), "accuracy"), Error);
}

TEST_CASE("docs/metrics.md has every metric's row, in order", "[docs]") {
  std::ifstream file(hfta::testing::source_folder() / "docs/metrics.md");
  std::stringstream page;
  page << file.rdbuf();
  std::size_t before = 0;
  for (const MetricInfo& info : metrics()) {
    const std::string row = documented(info);
    CAPTURE(row);
    const std::size_t found = page.str().find("\n" + row + "\n");
    REQUIRE(found != std::string::npos);
    CHECK(found > before);
    before = found;
  }
}

}  // namespace hfta::fusion
