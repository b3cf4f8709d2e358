// Every op with a rule, in every way it can run for several slots: as each slot alone, and never minding the
// neighbours.
#include "fusion/cpu/ops.hpp"

#include <limits>
#include <set>

#include "fusion/compiled/compilation.hpp"
#include "fusion/eager/program.hpp"
#include "op_cases.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;

void admit_all(Array& array, const Model& model) {
  for (int b = 0; b < kWidth; ++b) array.admit(b, trial(model, b));
}

// The case's ways to run: one for each candidate of its rule, and compiled.
std::vector<Lowering> ways(const Model& model) {
  std::vector<Lowering> all = {chunked(kWidth)};
  if (compilation_of(model.graph, model.recipe).why_not.empty()) all.push_back(chunked(kCompiled));
  for (const auto& [family, names] : choosable_families(model.graph)) {
    for (const std::string& name : names) all.push_back(chunked(kWidth, {{family, name}}));
  }
  return all;
}

void compare_with_alone(const Model& model, const Lowering& lowering) {
  Array alone(model.graph, model.recipe, {.lowering = chunked(1), .width = kWidth, .study_seed = 5});
  Array wide(model.graph, model.recipe, {.lowering = lowering, .width = kWidth, .study_seed = 5});
  alone.keep_gradients();
  wide.keep_gradients();
  admit_all(alone, model);
  admit_all(wide, model);
  for (int step = 0; step < 2; ++step) {
    const std::vector<double> expected = step_all(alone, model.batch), found = step_all(wide, model.batch);
    const bool one_chunk = wide.chunks() == 1;
    const auto together = wide.gradients(0);
    for (int b = 0; b < kWidth; ++b) {
      CAPTURE(step, b);
      const auto single = alone.gradients(b), of_slot = one_chunk ? together : wide.gradients(b);
      CHECK(found[static_cast<std::size_t>(b)] == Approx(expected[static_cast<std::size_t>(b)]).epsilon(1e-12));
      for (std::size_t w = 0; step == 0 && w < together.size(); ++w) {
        CAPTURE(together[w].first);
        const at::Tensor found_gradient = of_slot[w].second, expected_gradient = single[w].second;
        REQUIRE(found_gradient.defined() == expected_gradient.defined());
        if (!found_gradient.defined()) continue;
        const double scale = std::max(1.0, expected_gradient.norm().item<double>());
        CHECK((found_gradient.select(0, one_chunk ? b : 0) - expected_gradient.select(0, 0)).norm().item<double>() <=
              1e-12 * scale);
      }
    }
  }
  for (int b = 0; b < kWidth; ++b) CHECK(wide.extract(b).size() == alone.extract(b).size());
}

// The middle slot's state after a step beside neighbours whose numbers are not.
void compare_beside_broken(const Model& model, const Lowering& lowering) {
  std::vector<StateBytes> states;
  for (const bool broken : {false, true}) {
    Array array(model.graph, model.recipe, {.lowering = lowering, .width = kWidth, .study_seed = 5});
    admit_all(array, model);
    if (broken) {
      for (const int b : {0, 2}) {
        array.clear(b);
        SlotInit init = trial(model, b);
        init.hyper.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
        array.admit(b, init);
      }
    }
    step_all(array, model.batch);
    step_all(array, model.batch);
    states.push_back(array.extract(1));
  }
  CHECK(states[0] == states[1]);
}

}  // namespace

TEST_CASE("every rule is for an op that LibTorch has") {
  for (const BatchingRule& rule : batching_rules()) {
    CAPTURE(rule.op);
    const std::size_t dot = rule.op.find('.');
    const auto op = c10::Dispatcher::singleton().findSchema(
        {rule.op.substr(0, dot), dot == std::string::npos ? "" : rule.op.substr(dot + 1)});
    CHECK(op.has_value());
  }
}

// Those without a rule have their cases in tests/fusion/cpu.
TEST_CASE("every op that has a rule and a compiler is tried compiled") {
  std::set<std::string> tried;
  for (const OpCase& op_case : op_cases()) {
    const Model model = model_of(op_case);
    if (compilation_of(model.graph, model.recipe).why_not.empty()) tried.insert(op_case.op);
  }
  for (const std::string& op : cpu::compiled_ops()) {
    CAPTURE(op);
    const bool own_dtype = op != "aten::to.dtype";  // its case is one of another dtype, which is not compiled
    if (own_dtype && find_batching_rule(op) != nullptr) CHECK(tried.contains(op));
  }
}

TEST_CASE("every op with a rule gives each slot what it would get alone", "[numeric]") {
  for (const OpCase& op_case : op_cases()) {
    const Model model = model_of(op_case);
    for (const Lowering& lowering : ways(model)) {
      INFO(model.name << ", " << lowering.to_text());
      try {
        compare_with_alone(model, lowering);
        compare_beside_broken(model, lowering);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

TEST_CASE("a relu that goes behind a max pool gives what it would in front of it", "[numeric]") {
  const std::int64_t two = 2, three = 3, four = 4, five = 5;
  const std::vector<LayerSpec> images = {layer("conv2d", {std::int64_t{1}, four, three}), layer("relu"),
                                         layer("max_pool2d", {two}), layer("flatten"),
                                         layer("linear", {std::int64_t{36}, five})};
  const std::vector<LayerSpec> series = {layer("conv1d", {std::int64_t{2}, four, three}), layer("relu"),
                                         layer("max_pool1d", {three, two}), layer("flatten"),
                                         layer("linear", {std::int64_t{12}, five})};
  const Model model = classifier("images", images, {1, 8, 8}, 5, DType::kFloat64);
  compare_with_alone(model, chunked(kWidth));
  compare_with_alone(classifier("series", series, {2, 9}, 5, DType::kFloat64), chunked(kWidth));
}

// What is written in place is seen, or kept, by whoever would have: conv, relu, max pool and flatten are the first
// calls.
TEST_CASE("a relu stays in front of a max pool where what either keeps or reads is written", "[numeric]") {
  const std::int64_t two = 2, three = 3, four = 4, five = 5;
  const Model model =
      classifier("images",
                 {layer("conv2d", {std::int64_t{1}, four, three}), layer("relu"), layer("max_pool2d", {two}),
                  layer("flatten"), layer("linear", {std::int64_t{36}, five})},
                 {1, 8, 8}, 5, DType::kFloat64);
  const auto halve = [](Graph& graph, std::size_t result_of, std::ptrdiff_t at) {
    const ValueId of = graph.nodes[result_of].outputs.front();
    graph.nodes.insert(graph.nodes.begin() + at, {"aten::mul_.Scalar", {of, 0.5}, {kNoValue}, "", ""});
  };
  Model kept = model;
  halve(kept.graph, 2, 3);
  compare_with_alone(kept, chunked(kWidth));
  // The convolution's result is written between relu and pool, and read once more behind them.
  Model read = model;
  Graph& graph = read.graph;
  Node second = graph.nodes[2], sum = {"aten::add.Tensor", {}, {}, "", ""};
  const ValueId pooled = second.outputs.front(), other = static_cast<ValueId>(graph.values.size());
  for (int i = 0; i < 2; ++i) graph.values.push_back(graph.values[static_cast<std::size_t>(pooled)]);
  second.args.front() = graph.nodes[0].outputs.front();
  second.outputs = {other};
  sum.args = {pooled, other};
  sum.outputs = {other + 1};
  graph.nodes[3].args.front() = other + 1;
  graph.nodes.insert(graph.nodes.begin() + 3, {second, sum});
  halve(graph, 0, 2);
  compare_with_alone(read, chunked(kWidth));
}

}  // namespace hfta::fusion::testing
