// Gradients that are applied while the backward goes on. run_training() compares every other test's graph, too.
#include "fusion/cpu/apply.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

constexpr std::int64_t kElements = 10, kBytes = kElements * 8;

Tensor tensor_in(int buffer) { return {buffer, 0, {kElements}, {1}, DType::kFloat64}; }

// The weights 0 and 1, whose gradients are the buffers 10 and 11.
std::vector<std::string> order_of(std::int64_t bytes, const std::vector<Tensor>& outputs = {}) {
  Recomputing all;
  const auto step = [&](const std::string& name, std::vector<int> buffers) {
    all.schedule.steps.push_back({[](const Run&) {}, {}, std::move(buffers)});
    all.schedule.steps.back().info.op = name;
  };
  step("forward", {0, 1, 2});
  step("gradient 0", {2, 10});
  step("reads 0", {0, 3});
  step("gradient 1", {3, 11});
  step("last", {2, 3});
  all.brought = {{4, 2}};
  const std::vector<WeightGradient> gradients = {{0, 0, tensor_in(10)}, {1, 0, tensor_in(11)}};
  const std::vector<Tensor> weights = {tensor_in(0), tensor_in(1)};
  apply_gradients(all, gradients, weights, outputs, bytes);
  CHECK(all.schedule.steps.at(all.brought.front().step).info.op == "last");
  std::vector<std::string> order;
  for (const Step& one : all.schedule.steps) {
    order.push_back(one.info.op);
    if (one.info.op != "optimizer") continue;
    for (const int buffer : one.buffers) order.back() += " " + std::to_string(buffer);
  }
  return order;
}

// x [8, 24] through a layer of so many features; read twice, it is another layer's weight as well.
SmallGraph layer(std::int64_t features, bool twice) {
  SmallGraph small;
  const ValueId x = small.weight("x", {8, 24}), w = small.weight("w", {features, 24});
  const ValueId y = small.call("aten::linear", {x, w, std::monostate{}});
  if (!twice) return small;
  const ValueId again = small.call("aten::linear", {small.call("aten::tanh", {x}), w, std::monostate{}});
  small.call("aten::mul.Tensor", {y, again});
  return small;
}

CompiledGraph plan_of(const SmallGraph& small, std::int64_t apply_bytes) {
  const Graph graph = with_error(small.graph, DType::kFloat64);
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  return compile({.graph = graph, .index = index, .dtype = DType::kFloat64, .options = {.apply_bytes = apply_bytes}})
      .plan;
}

// The sizes of what each of the plan's optimizer steps applies, by step.
std::vector<std::vector<Dims>> applied(const SmallGraph& small, std::int64_t apply_bytes) {
  std::vector<std::vector<Dims>> all;
  for (const CompiledGraph::KernelInfo& info : plan_of(small, apply_bytes).infos) {
    if (info.op == "optimizer") all.push_back(info.sizes);
  }
  return all;
}

}  // namespace

TEST_CASE("a gradient's turn is behind the last step that touches it or its weight") {
  using Order = std::vector<std::string>;
  CHECK(order_of(1) ==
        Order{"forward", "gradient 0", "reads 0", "optimizer 10 0", "gradient 1", "optimizer 11 1", "last"});
  CHECK(order_of(kBytes) == order_of(1));
  CHECK(order_of(kBytes + 1) == Order{"forward", "gradient 0", "reads 0", "gradient 1", "optimizer 10 0 11 1", "last"});
  CHECK(order_of(2 * kBytes + 1) ==
        Order{"forward", "gradient 0", "reads 0", "gradient 1", "last", "optimizer 10 0 11 1"});
}

TEST_CASE("a weight that is read when the run has ended keeps its value until then") {
  CHECK(order_of(1, {tensor_in(0)}) == std::vector<std::string>{"forward", "gradient 0", "reads 0", "gradient 1",
                                                                "optimizer 11 1", "last", "optimizer 10 0"});
}

TEST_CASE("a large layer's gradient is applied some rows at a time, and takes their memory") {
  using Sizes = std::vector<std::vector<Dims>>;
  constexpr std::int64_t kRow = 24 * 8;
  const SmallGraph small = layer(260, false);
  CHECK(applied(small, 65 * kRow) == Sizes{{{128, 24}}, {{128, 24}}, {{8, 24}, {4, 24}}});
  CHECK(applied(small, 129 * kRow) == Sizes{{{8, 24}, {260, 24}}});
  CHECK(applied(small, 1) == Sizes{{{64, 24}}, {{64, 24}}, {{64, 24}}, {{64, 24}}, {{8, 24}, {4, 24}}});
  static_cast<void>(run_training(small));  // to the same bits
}

TEST_CASE("rows of a gradient that is summed in parts have the bits of the whole") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4096, 300}), w = small.weight("w", {300, 300});
  small.call("aten::linear", {x, w, std::monostate{}});
  static_cast<void>(run_training(small));
}

TEST_CASE("the gradient of a weight that is read twice is applied as a whole") {
  const SmallGraph small = layer(260, true);
  CHECK(applied(small, 1) == std::vector<std::vector<Dims>>{{{8, 24}, {260, 24}}});
  static_cast<void>(run_training(small));
}

}  // namespace hfta::fusion::cpu::testing
