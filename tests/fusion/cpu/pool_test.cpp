// Compiled pools: outputs against loops over every element, gradients against finite differences.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

struct Case {
  std::int64_t n, c, h, w;
  Ints kernel, stride, padding = {0, 0}, dilation = {1, 1};
  bool ceil = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {2, 1, 8, 8, {2, 2}, {2, 2}},
      {2, 5, 9, 7, {2, 2}, {}},
      {2, 16, 8, 6, {2, 2}, {2, 2}},
      {2, 35, 7, 7, {3, 3}, {2, 2}, {1, 1}},
      {2, 19, 7, 8, {3, 2}, {1, 2}, {1, 0}},
      {2, 9, 6, 7, {2}, {2}, {0}, {1}, true},
      {1, 17, 9, 9, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
      {1, 18, 9, 9, {2, 2}, {3, 3}},
      {1, 64, 4, 4, {4, 4}, {4, 4}},
  };
  return all;
}

std::int64_t at(const Ints& v, std::size_t d) { return v.size() == 1 ? v[0] : v[d]; }

// Rows (or columns) of each output that lie in the image.
std::vector<Ints> rows_of(const Case& k, std::size_t d) {
  const std::int64_t in = d == 0 ? k.h : k.w, kernel = at(k.kernel, d), padding = at(k.padding, d);
  const std::int64_t stride = k.stride.empty() ? kernel : at(k.stride, d), dilation = at(k.dilation, d);
  std::vector<Ints> out;
  for (std::int64_t begin = -padding;; begin += stride) {
    const bool fits = begin + dilation * (kernel - 1) < in + padding;
    const bool begins = k.ceil && begin < in && begin + dilation * (kernel - 1) - stride < in + padding - 1;
    if (!fits && !begins) return out;
    out.emplace_back();
    for (std::int64_t i = 0; i < kernel; ++i) {
      if (begin + i * dilation >= 0 && begin + i * dilation < in) out.back().push_back(begin + i * dilation);
    }
  }
}

std::vector<double> slow(const Case& k, const std::vector<double>& x, bool largest) {
  std::vector<double> y;
  for (std::int64_t image = 0; image < k.n * k.c; ++image) {
    for (const Ints& rows : rows_of(k, 0)) {
      for (const Ints& columns : rows_of(k, 1)) {
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (const std::int64_t h : rows) {
          for (const std::int64_t w : columns) {
            const double v = x[static_cast<std::size_t>((image * k.h + h) * k.w + w)];
            most = std::max(most, v);
            sum += v;
          }
        }
        y.push_back(largest ? most : sum / static_cast<double>(rows.size() * columns.size()));
      }
    }
  }
  return y;
}

SmallGraph graph_of(const Case& k, bool largest) {
  SmallGraph small;
  const ValueId x = small.weight("x", {k.n, k.c, k.h, k.w});
  if (largest) {
    small.call("aten::max_pool2d", {x, k.kernel, k.stride, k.padding, k.dilation, k.ceil});
  } else {
    small.call("aten::avg_pool2d", {x, k.kernel, k.stride, k.padding, k.ceil, false, std::monostate{}});
  }
  return small;
}

}  // namespace

TEST_CASE("pools: output and gradients") {
  for (const bool largest : {true, false}) {
    for (const Case& k : cases()) {
      CAPTURE(largest, k.c, k.h, k.w, k.kernel, k.stride);
      const SmallGraph small = graph_of(k, largest);
      const Outcome outcome = run_training(small);
      const std::vector<double> wanted = slow(k, small.weights[0], largest);
      REQUIRE(outcome.output.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(outcome.output[i] == Approx(wanted[i]).margin(1e-12));
      check_gradients(small);
      check_float(small);
    }
  }
}

TEST_CASE("maxima of windows with gaps") {
  const Case k{2, 20, 9, 8, {3, 2}, {1, 2}, {1, 1}, {2, 3}};
  const SmallGraph small = graph_of(k, true);
  const Outcome outcome = run_training(small);
  CHECK(outcome.output == slow(k, small.weights[0], true));
  check_gradients(small);
}

TEST_CASE("means may count padding, or divide by any number") {
  SmallGraph small;
  const ValueId x = small.weight("x", {1, 3, 3, 3});
  small.call("aten::avg_pool2d", {x, Ints{2, 2}, Ints{2, 2}, Ints{1, 1}, false, true, std::monostate{}});
  CHECK(run_training(small).output[0] == Approx(small.weights[0][0] / 4));
  check_gradients(small);
  small.graph.nodes[0].args[6] = std::int64_t{5};
  CHECK(run_training(small).output[0] == Approx(small.weights[0][0] / 5));
  check_gradients(small);
}

TEST_CASE("adaptive means, windows of unequal sizes") {
  for (const Ints& out : {Ints{1, 1}, Ints{3, 2}, Ints{7, 5}}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {2, 18, 7, 5});
    small.call("aten::adaptive_avg_pool2d", {x, out});
    const Outcome outcome = run_training(small);
    double sum = 0;  // of the first window
    const std::int64_t rows = (7 + out[0] - 1) / out[0], columns = (5 + out[1] - 1) / out[1];
    for (std::int64_t h = 0; h < rows; ++h) {
      for (std::int64_t w = 0; w < columns; ++w) sum += small.weights[0][static_cast<std::size_t>(h * 5 + w)];
    }
    CHECK(outcome.output[0] == Approx(sum / static_cast<double>(rows * columns)).margin(1e-12));
    CHECK(outcome.sizes == Dims{2, 18, out[0], out[1]});
    check_gradients(small);
  }
}

TEST_CASE("pools of lines") {
  SmallGraph small;
  const ValueId x = small.weight("x", {2, 17, 9});
  const ValueId most = small.call("aten::max_pool1d", {x, Ints{2}, Ints{}, Ints{0}, Ints{1}, false});
  small.call("aten::avg_pool1d", {most, Ints{2}, Ints{2}, Ints{0}, false, true});
  CHECK(run_training(small).sizes == Dims{2, 17, 2});
  check_gradients(small);
}

TEST_CASE("of equal maxima the first counts; a NaN is the largest of all") {
  SmallGraph small;
  const ValueId x = small.weight("x", {1, 1, 2, 4});
  small.call("aten::max_pool2d", {x, Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1}, false});
  small.weights[0] = {1, 2, 5, std::numeric_limits<double>::quiet_NaN(), 2, 2, 7, 6};
  SmallGraph copy = small;
  copy.weights[0][3] = 0;
  const Outcome outcome = run_training(copy);
  CHECK(outcome.output == std::vector<double>{2, 7});
  CHECK(outcome.gradients[0][1] != 0);
  CHECK(outcome.gradients[0][4] == 0);
  CHECK(outcome.gradients[0][5] == 0);
  const CompiledGraph plan =
      compile({.graph = small.graph, .index = {0}, .dtype = DType::kFloat64, .pass = Pass::kForward}).plan;
  Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  buffers[static_cast<std::size_t>(plan.weights[0].buffer)] = reinterpret_cast<std::byte*>(small.weights[0].data());
  const Run run{buffers, {}, {1, 2}};
  plan.kernels.front()(run);
  const auto* const y = reinterpret_cast<const double*>(buffers[static_cast<std::size_t>(plan.outputs[0].buffer)]);
  CHECK(y[0] == 2);
  CHECK(std::isnan(y[1]));
}

}  // namespace hfta::fusion::cpu::testing
