// Compiled batch norm: outputs and statistics against slow sums, gradients against finite differences.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Args = std::vector<Arg>;

struct Norm {
  SmallGraph small;
  ValueId x = kNoValue, y = kNoValue;
};

Norm norm_of(const Shape& sizes, bool training, bool affine = true) {
  Norm n;
  const Shape channels = {sizes[1]};
  n.x = n.small.weight("x", sizes);
  const Arg weight = affine ? Arg(n.small.weight("weight", channels)) : Arg();
  const Arg bias = affine ? Arg(n.small.weight("bias", channels)) : Arg();
  const ValueId mean = n.small.weight("running_mean", channels, false);
  const ValueId variance = n.small.weight("running_var", channels, false);
  for (double& v : n.small.weights.back()) v = std::abs(v) + 0.5;
  n.y = n.small.call("aten::batch_norm", {n.x, weight, bias, mean, variance, training, 0.1, 1e-5, false});
  return n;
}

// Channel c of element i of a row-major tensor.
std::size_t channel(const Shape& sizes, std::size_t i) {
  std::int64_t inner = 1;
  for (std::size_t d = 2; d < sizes.size(); ++d) inner *= sizes[d];
  return static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % sizes[1]);
}

struct Statistics {
  double mean = 0, squares = 0, count = 0;
};

Statistics statistics(const Shape& sizes, const std::vector<double>& x, std::size_t c) {
  Statistics s;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (channel(sizes, i) == c) s.mean += x[i], s.count += 1;
  }
  s.mean /= s.count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (channel(sizes, i) == c) s.squares += (x[i] - s.mean) * (x[i] - s.mean);
  }
  return s;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{7, 5},        {130, 70},      {4, 3, 5},   {2, 17, 40},
                                         {3, 16, 5, 4}, {2, 129, 3, 3}, {5, 1, 6, 6}};
  return all;
}

}  // namespace

TEST_CASE("batch norm by the batch's statistics") {
  for (const Shape& sizes : shapes()) {
    CAPTURE(to_text(sizes));
    const Norm n = norm_of(sizes, true);
    const Outcome outcome = run_training(n.small);
    const std::vector<double>& x = n.small.weights[0];
    for (std::size_t i = 0; i < x.size(); i += 7) {
      const std::size_t c = channel(sizes, i);
      const Statistics s = statistics(sizes, x, c);
      const double wanted =
          (x[i] - s.mean) / std::sqrt(s.squares / s.count + 1e-5) * n.small.weights[1][c] + n.small.weights[2][c];
      CHECK(outcome.output[i] == Approx(wanted).margin(1e-10));
    }
    check_gradients(n.small);
    check_float(n.small, 2e-5);
  }
}

TEST_CASE("batch norm by running statistics") {
  for (const Shape& sizes : shapes()) {
    CAPTURE(to_text(sizes));
    const Norm n = norm_of(sizes, false);
    const Outcome outcome = run_training(n.small);
    const std::vector<double>& x = n.small.weights[0];
    for (std::size_t i = 0; i < x.size(); i += 7) {
      const std::size_t c = channel(sizes, i);
      const auto& w = n.small.weights;
      CHECK(outcome.output[i] ==
            Approx((x[i] - w[3][c]) / std::sqrt(w[4][c] + 1e-5) * w[1][c] + w[2][c]).margin(1e-10));
    }
    check_gradients(n.small);
  }
}

TEST_CASE("batch norm, with what follows it") {
  for (const Shape& sizes : {Shape{9, 5}, Shape{2, 17, 4, 4}}) {
    for (const bool residual : {false, true}) {
      for (const char* relu : {"aten::relu", "aten::relu_", ""}) {
        for (const bool swapped : {false, true}) {
          CAPTURE(to_text(sizes), residual, relu, swapped);
          Norm n = norm_of(sizes, true, !swapped);
          ValueId y = n.y;
          if (residual) {
            const Args args = swapped ? Args{n.x, y, std::int64_t{1}} : Args{y, n.x, std::int64_t{1}};
            y = n.small.call(swapped ? "aten::add.Tensor" : "aten::add_.Tensor", args);
          }
          if (*relu != '\0') y = n.small.call(relu, {y});
          n.small.call("aten::mul.Tensor", {y, n.x});
          check_gradients(n.small);
        }
      }
    }
  }
}

TEST_CASE("batch norm that is added to a part of what is read again is no place to add by the way") {
  Norm n = norm_of({4, 3, 2}, true);
  const ValueId whole = n.small.call("aten::mul.Tensor", {n.x, 2.0});
  const ValueId part =
      n.small.call("aten::slice.Tensor", {whole, std::int64_t{0}, std::int64_t{0}, std::int64_t{4}, std::int64_t{1}});
  auto& nodes = n.small.graph.nodes;
  std::rotate(nodes.begin(), nodes.begin() + 1, nodes.end());  // the norm behind both
  n.small.call("aten::add_.Tensor", {part, n.y, std::int64_t{1}});
  n.small.call("aten::square", {whole});
  CHECK_THROWS_WITH(run_training(n.small), Catch::Contains("it writes what is read elsewhere"));
}

TEST_CASE("what is added to a batch norm that runs without gradients has its own") {
  for (const char* const op : {"aten::add.Tensor", "aten::add_.Tensor"}) {
    Norm n = norm_of({4, 3, 2}, true);
    n.small.graph.nodes.front().no_gradient = true;
    for (Weight& weight : n.small.graph.weights) weight.trained = false;
    const ValueId other = n.small.weight("other", {4, 3, 2});
    const ValueId sum = n.small.call("aten::mul.Tensor", {other, 2.0});
    std::swap(n.small.graph.nodes[0], n.small.graph.nodes[1]);  // what is added is there before the norm
    n.small.call("aten::add.Tensor", {sum, n.y, std::int64_t{1}});
    n.small.graph.nodes.back().op = op;
    const Outcome outcome = run_training(n.small);
    REQUIRE(outcome.gradients.size() == n.small.graph.weights.size());
    const std::vector<double>& found = outcome.gradients.back();
    REQUIRE(found.size() == 4 * 3 * 2);
    CHECK(std::ranges::any_of(found, [](double v) { return v != 0; }));
    check_gradients(n.small);
  }
}

TEST_CASE("running statistics move towards the batch's") {
  for (const double offset : {0.0, 1e4}) {
    Norm n = norm_of({6, 3, 4, 4}, true);
    for (double& v : n.small.weights[0]) v += offset;
    Graph& graph = n.small.graph;
    for (Weight& w : graph.weights) w.dtype = DType::kFloat32;
    const CompiledGraph plan =
        compile({.graph = with_error(graph, DType::kFloat32), .index = {0, 0}, .dtype = DType::kFloat32}).plan;
    Arena arena;
    const std::span<std::byte*> buffers = arena.bind(plan);
    std::vector<std::vector<float>> weights;
    for (const auto& values : n.small.weights) weights.emplace_back(values.begin(), values.end());
    for (std::size_t w = 0; w < weights.size(); ++w) {
      buffers[static_cast<std::size_t>(plan.weights[w].buffer)] = reinterpret_cast<std::byte*>(weights[w].data());
    }
    const Run run{buffers, {}, {1, 2}};
    plan.kernels.front()(run);  // a copy into channels last
    plan.kernels[1](run);
    const std::vector<double> x(weights[0].begin(), weights[0].end());
    for (std::size_t c = 0; c < 3; ++c) {
      const Statistics s = statistics({6, 3, 4, 4}, x, c);
      CHECK(weights[3][c] == Approx(0.9 * n.small.weights[3][c] + 0.1 * s.mean).epsilon(1e-5));
      CHECK(weights[4][c] == Approx(0.9 * n.small.weights[4][c] + 0.1 * s.squares / (s.count - 1)).epsilon(1e-5));
    }
  }
}

TEST_CASE("batches are counted in place") {
  SmallGraph small;
  const ValueId x = small.weight("x", {2, 3}), count = small.weight("count", {}, false);
  small.graph.weights[1].dtype = DType::kInt64;
  small.call("aten::add_.Tensor", {count, std::int64_t{1}, std::int64_t{1}});
  small.graph.nodes.back().no_gradient = true;
  small.call("aten::square", {x});
  const CompiledGraph plan =
      compile({.graph = with_error(small.graph, DType::kFloat64), .index = {0, 1, 2}, .dtype = DType::kFloat64}).plan;
  Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  std::int64_t batches = 41;
  buffers[static_cast<std::size_t>(plan.weights[1].buffer)] = reinterpret_cast<std::byte*>(&batches);
  plan.kernels.front()(Run{buffers, {}, {1, 2}});
  CHECK(batches == 42);
}

}  // namespace hfta::fusion::cpu::testing
