// Metrics against what scikit-learn printed: scikit_learn_cases.py.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fusion/metrics/accumulator.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/metrics/every_spec.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::testing {
namespace {

using nlohmann::json;

json read_cases() {
  const char* other = std::getenv("HFTA_METRIC_CASES");
  std::ifstream file(other != nullptr
                         ? std::filesystem::path(other)
                         : hfta::testing::source_folder() / "tests/fusion/metrics/scikit_learn_cases.json");
  return json::parse(file).at("cases");
}

OutputKind kind_of(const std::string& name) {
  for (const OutputKind kind : {OutputKind::kClassScores, OutputKind::kLogit, OutputKind::kProbability,
                                OutputKind::kMargin, OutputKind::kValue}) {
    if (name == name_of(kind)) return kind;
  }
  throw std::runtime_error("no kind of outputs: " + name);
}

// Nested lists.
at::Tensor tensor_of(const json& lists) {
  std::vector<std::int64_t> shape;
  for (const json* list = &lists; list->is_array(); list = &list->at(0)) {
    shape.push_back(static_cast<std::int64_t>(list->size()));
  }
  std::vector<double> numbers;
  std::vector<const json*> waiting = {&lists};  // the last one first
  while (!waiting.empty()) {
    const json* next = waiting.back();
    waiting.pop_back();
    if (next->is_array()) {
      for (auto entry = next->rbegin(); entry != next->rend(); ++entry) waiting.push_back(&*entry);
    } else {
      numbers.push_back(next->get<double>());
    }
  }
  return at::tensor(numbers, at::kDouble).reshape(shape);
}

using Values = std::map<std::string, double>;

// The case as slot 1 beside another one, in batches of 1, 2, ... samples.
Values in_batches(const std::vector<MetricSpec>& specs, OutputKind kind, std::optional<std::int64_t> ignore,
                  const at::Tensor& output, const at::Tensor& target) {
  MetricAccumulator sums(specs, kind, 2, ignore);
  const at::Tensor outputs = at::stack({-output, output}), targets = at::stack({target.flip(0), target});
  for (std::int64_t begin = 0, n = 1; begin < output.size(0); begin += n++) {
    const std::int64_t size = std::min(n, output.size(0) - begin);
    sums.add(outputs.narrow(1, begin, size), targets.narrow(1, begin, size));
  }
  return sums.result().at(1);
}

void compare(const Values& found, const json& expected) {
  for (const auto& [name, value] : expected.items()) {
    CAPTURE(name);
    REQUIRE(found.count(name) == 1);
    if (value.is_null()) {
      CHECK(std::isnan(found.at(name)));
    } else {
      CHECK(found.at(name) == Approx(value.get<double>()).epsilon(1e-12).margin(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("metrics are scikit-learn's", "[numeric]") {
  std::set<std::string> compared;
  for (const json& entry : read_cases()) {
    CAPTURE(entry.dump());
    const OutputKind kind = kind_of(entry.at("kind"));
    const std::vector<MetricSpec> specs = every_spec(kind);
    const json ignored = entry.value("ignore_index", json());
    const auto ignore = ignored.is_null() ? std::nullopt : std::optional(ignored.get<std::int64_t>());
    const at::Tensor output = tensor_of(entry.at("output"));
    const at::Tensor target = tensor_of(entry.at("target"));
    MetricAccumulator whole(specs, kind, 0, ignore);
    whole.add(output, target);
    compare(whole.result().at(0), entry.at("expected"));
    compare(in_batches(specs, kind, ignore, output, target), entry.at("expected"));
    for (const MetricSpec& spec : specs) {
      for (const auto& [name, value] : entry.at("expected").items()) {
        if (gives(spec, name)) compared.insert(spec.name);
      }
    }
  }
  CHECK(compared.size() == metrics().size());
}

}  // namespace hfta::fusion::testing
