// Embeddings, layer and group norm.
#include <catch2/catch.hpp>
#include <cmath>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

// Rows of n, each brought to mean 0 and variance 1.
std::vector<double> normalized(const std::vector<double>& x, std::size_t n, double eps) {
  std::vector<double> out = x;
  for (std::size_t r = 0; r < x.size(); r += n) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[r + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) variance += (x[r + i] - mean) * (x[r + i] - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) out[r + i] = (x[r + i] - mean) / std::sqrt(variance + eps);
  }
  return out;
}

}  // namespace

TEST_CASE("embeddings gather rows, and scatter gradients but not to the padding row") {
  for (const std::int64_t padding : {-1, 2}) {
    SmallGraph small;
    const ValueId table = small.weight("table", {5, 3});
    const ValueId indices = small.constant("indices", {2, 4}, DType::kInt64, {0, 2, 4, 4, 1, 0, 0, 2});
    const ValueId y = small.call("aten::embedding", {table, indices, padding, false, false});
    const ValueId again = small.call("aten::embedding", {table, indices, padding, false, false});
    small.call("aten::mul.Tensor", {y, again});
    const Outcome outcome = run_training(small);
    CHECK(outcome.sizes == Dims{2, 4, 3});
    CHECK(outcome.output[2 * 3 + 1] == small.weights[0][4 * 3 + 1] * small.weights[0][4 * 3 + 1]);
    CHECK((outcome.gradients[0][2 * 3] == 0) == (padding == 2));
    CHECK(outcome.gradients[0][3 * 3] == 0);
    check_float(small);
    if (padding < 0) check_gradients(small);
  }
}

TEST_CASE("an embedding's index that is none makes NaN of its row alone") {
  SmallGraph small;
  const ValueId table = small.weight("table", {5, 3});
  const ValueId indices = small.constant("indices", {3}, DType::kInt64, {1, 5, -1});
  small.call("aten::embedding", {table, indices, std::int64_t{-1}, false, false});
  const Outcome outcome = run_in_float(small);
  CHECK_FALSE(std::isnan(outcome.output[2]));
  CHECK(std::isnan(outcome.output[3]));
  CHECK(std::isnan(outcome.output[8]));
}

TEST_CASE("layer norm, with and without weights, of rows of any length, used twice") {
  for (const std::int64_t n : {3, 16, 21, 64}) {
    for (const int weights : {0, 1, 2}) {
      CAPTURE(n, weights);
      SmallGraph small;
      const ValueId x = small.weight("x", {70, 2, n});
      const Arg w = weights > 0 ? Arg(small.weight("w", {n})) : Arg();
      const Arg bias = weights > 1 ? Arg(small.weight("b", {n})) : Arg();
      const ValueId first = small.call("aten::layer_norm", {x, Ints{n}, w, bias, 1e-3, true});
      if (weights < 2) {
        const std::vector<double> wanted = normalized(small.weights[0], static_cast<std::size_t>(n), 1e-3);
        const Outcome outcome = run_training(small);
        for (std::size_t i = 0; i < wanted.size(); i += 7) {
          const double factor = weights == 0 ? 1 : small.weights[1][i % static_cast<std::size_t>(n)];
          CHECK(outcome.output[i] == Approx(factor * wanted[i]).epsilon(1e-9));
        }
      }
      const ValueId sum = small.call("aten::add.Tensor", {first, x, std::int64_t{1}});
      small.call("aten::layer_norm", {sum, Ints{n}, w, bias, 1e-3, true});
      check_gradients(small);
      check_float(small, 2e-4);
    }
  }
}

TEST_CASE("layer norm of a transposed input and of two dimensions") {
  SmallGraph small;
  const ValueId x = small.weight("x", {4, 3, 5});
  const ValueId w = small.weight("w", {3, 4}), bias = small.weight("b", {3, 4});
  const ValueId turned = small.call("aten::transpose.int", {x, std::int64_t{0}, std::int64_t{2}});
  small.call("aten::layer_norm", {turned, Ints{3, 4}, w, bias, 1e-5, false});
  check_gradients(small);
}

TEST_CASE("group norm") {
  for (const std::int64_t groups : {1, 2, 6}) {
    CAPTURE(groups);
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 6, 5, 2}), w = small.weight("w", {6}), bias = small.weight("b", {6});
    small.call("aten::group_norm", {x, groups, w, bias, 1e-3, true});
    const std::vector<double> wanted = normalized(small.weights[0], static_cast<std::size_t>(60 / groups), 1e-3);
    const Outcome outcome = run_training(small);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::size_t c = i / 10 % 6;
      CHECK(outcome.output[i] == Approx(wanted[i] * small.weights[1][c] + small.weights[2][c]).epsilon(1e-9));
    }
    check_gradients(small);
    check_float(small, 1e-4);
  }
}

TEST_CASE("a NaN stays in its row") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 20});
  small.weights[0][25] = NAN;
  small.call("aten::layer_norm", {x, Ints{20}, {}, {}, 1e-5, true});
  const Outcome outcome = run_in_float(small);
  for (std::size_t i = 0; i < 60; ++i) CHECK(std::isnan(outcome.output[i]) == (i / 20 == 1));
}

}  // namespace hfta::fusion::cpu::testing
