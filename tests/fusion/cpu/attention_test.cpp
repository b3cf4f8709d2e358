// Softmax, products of matrices, attention.
#include <catch2/catch.hpp>
#include <cmath>

#include "fusion/random/draws.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr auto whole(std::int64_t n) { return n; }

}  // namespace

TEST_CASE("softmax and its logarithm along any dimension") {
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int"}) {
    for (const std::int64_t dim : {0, 1, -1}) {
      CAPTURE(op, dim);
      SmallGraph small;
      const ValueId x = small.weight("x", {3, 35, 18});
      for (double& v : small.weights[0]) v *= 5;
      small.call(op, {x, dim, {}});
      const Outcome outcome = run_training(small);
      const std::size_t step = dim == 0 ? 35 * 18 : dim == 1 ? 18 : 1, n = dim == 0 ? 3 : dim == 1 ? 35 : 18;
      double total = 0;
      for (std::size_t i = 0; i < n; ++i) total += std::exp(small.weights[0][i * step]);
      const double share = std::exp(small.weights[0][step]) / total;
      CHECK(outcome.output[step] == Approx(op[6] == 's' ? share : std::log(share)).epsilon(1e-10));
      check_gradients(small);
      check_float(small);
    }
  }
}

TEST_CASE("columns of all lengths and numbers have the softmax of rows") {
  for (const std::int64_t columns : {2, 7, 8, 15, 16, 17, 64, 65, 131}) {
    for (const std::int64_t n : {1, 2, 9}) {
      CAPTURE(columns, n);
      SmallGraph by_column, by_row;
      const ValueId x = by_column.weight("x", {2, n, columns});
      by_column.call("aten::softmax.int", {x, whole(1), {}});
      const ValueId same = by_row.weight("x", {2, columns, n});
      for (std::int64_t i = 0; i < 2 * n * columns; ++i) {
        const std::int64_t block = i / (n * columns), k = i / columns % n, column = i % columns;
        by_row.weights[0][static_cast<std::size_t>((block * columns + column) * n + k)] =
            by_column.weights[0][static_cast<std::size_t>(i)];
      }
      by_row.call("aten::softmax.int", {same, whole(-1), {}});
      const Outcome wide = run_training(by_column), long_ones = run_training(by_row);
      for (std::int64_t i = 0; i < 2 * n * columns; ++i) {
        const std::int64_t block = i / (n * columns), k = i / columns % n, column = i % columns;
        CHECK(wide.output[static_cast<std::size_t>(i)] ==
              Approx(long_ones.output[static_cast<std::size_t>((block * columns + column) * n + k)]).epsilon(1e-12));
      }
      check_gradients(by_column);
    }
  }
}

TEST_CASE("a NaN stays in its column of a softmax") {
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int"}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 4, 20});
    small.weights[0][4 * 20 + 20 + 5] = NAN;
    small.call(op, {x, whole(1), {}});
    const Outcome outcome = run_in_float(small);
    for (std::size_t i = 0; i < 240; ++i) CHECK(std::isnan(outcome.output[i]) == (i / 80 == 1 && i % 20 == 5));
  }
}

TEST_CASE("a NaN stays in its row of a softmax") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 20});
  small.weights[0][25] = NAN;
  small.call("aten::softmax.int", {x, whole(-1), {}});
  const Outcome outcome = run_in_float(small);
  for (std::size_t i = 0; i < 60; ++i) CHECK(std::isnan(outcome.output[i]) == (i / 20 == 1));
}

namespace {

struct ProductCase {
  Shape a, b;
  Dims sizes;
};

const std::vector<ProductCase>& product_cases() {
  static const std::vector<ProductCase> cases = {
      {{5, 7}, {7, 3}, {5, 3}},
      {{2, 5, 7}, {2, 7, 3}, {2, 5, 3}},
      {{2, 5, 7}, {7, 3}, {2, 5, 3}},
      {{5, 7}, {2, 7, 3}, {2, 5, 3}},
      {{3, 1, 5, 7}, {2, 7, 4}, {3, 2, 5, 4}},
      {{2, 70, 9}, {2, 9, 66}, {2, 70, 66}},
      {{7}, {7, 3}, {3}},
      {{2, 5, 7}, {7}, {2, 5}},
      {{7}, {7}, {}},
      {{1, 7}, {7, 1}, {1, 1}},
  };
  return cases;
}

// The value with its last two dimensions swapped in memory, not in meaning; or with gaps between elements.
ValueId laid(SmallGraph& small, const std::string& name, Shape shape, int how) {
  if (shape.size() < 2 || how == 0) return small.weight(name, shape);
  if (how == 1) {
    std::swap(shape.back(), shape[shape.size() - 2]);
    return small.call("aten::transpose.int", {small.weight(name, shape), whole(-1), whole(-2)});
  }
  shape.push_back(2);
  return small.call("aten::select.int", {small.weight(name, shape), whole(-1), whole(1)});
}

}  // namespace

TEST_CASE("products of matrices however they lie") {
  for (const ProductCase& c : product_cases()) {
    for (const int how_a : {0, 1, 2}) {
      for (const int how_b : {0, 1, 2}) {
        CAPTURE(to_text(c.a), to_text(c.b), how_a, how_b);
        SmallGraph small;
        const ValueId a = laid(small, "a", c.a, how_a), b = laid(small, "b", c.b, how_b);
        small.call("aten::matmul", {a, b});
        const Outcome outcome = run_training(small);
        CHECK(outcome.sizes == c.sizes);
        check_gradients(small);
        if (how_a != 0 || how_b != 0 || c.a.size() < 2 || c.b.size() < 2) continue;
        const std::size_t columns = static_cast<std::size_t>(c.b.back()), depth = static_cast<std::size_t>(c.a.back());
        double sum = 0;
        for (std::size_t k = 0; k < depth; ++k)
          sum += small.weights[0][k] * small.weights[1][k * columns + columns - 1];
        CHECK(outcome.output[columns - 1] == Approx(sum).epsilon(1e-12));
        check_float(small);
      }
    }
  }
}

TEST_CASE("a product that is added") {
  for (const Shape& shape : {Shape{3}, Shape{5, 3}, Shape{5, 1}}) {
    SmallGraph small;
    const ValueId c = small.weight("c", shape), a = small.weight("a", {5, 7}), b = small.weight("b", {7, 3});
    small.call("aten::addmm", {c, a, b, 0.5, whole(1)});
    const Outcome outcome = run_training(small);
    double sum = 0.5 * small.weights[0][0];
    for (std::size_t k = 0; k < 7; ++k) sum += small.weights[1][k] * small.weights[2][k * 3];
    CHECK(outcome.output[0] == Approx(sum).epsilon(1e-12));
    check_gradients(small);
  }
}

TEST_CASE("what is added 0 times may be anything") {
  SmallGraph small;
  const ValueId c = small.weight("c", {2, 5, 3}, false), a = small.weight("a", {2, 5, 7}),
                b = small.weight("b", {2, 7, 3});
  for (double& v : small.weights[0]) v = NAN;
  small.call("aten::baddbmm", {c, a, b, 0.0, whole(1)});
  for (const double v : run_training(small).output) CHECK(std::isfinite(v));
  check_gradients(small);
}

namespace {

struct AttentionCase {
  std::string name;
  std::int64_t heads = 3, key_heads = 3, l = 5, s = 5;
  bool causal = false;
  int mask = 0;  // 1: added [s], 2: bool [N, 1, l, s], 3: bool [heads, l, s]
  double rate = 0;
};

constexpr std::int64_t kSamples = 2, kWidth = 4, kValues = 6;

const std::vector<AttentionCase>& attention_cases() {
  static const std::vector<AttentionCase> cases = {
      {"plain"},
      {"causal", 3, 3, 5, 5, true},
      {"two lengths", 3, 3, 4, 7},
      {"long", 1, 1, 33, 70, true},
      {"added mask", 3, 3, 4, 5, true, 1},
      {"bool mask", 3, 3, 4, 5, false, 2},
      {"grouped queries", 4, 2, 4, 5, true},
      {"grouped queries, mask of heads", 4, 2, 4, 5, false, 3},
      {"one key for all heads", 3, 1, 4, 5},
      {"dropout", 3, 3, 4, 5, true, 0, 0.4},
      {"dropout, grouped queries", 4, 2, 4, 5, false, 2, 0.4},
  };
  return cases;
}

std::vector<double> mask_values(const AttentionCase& c, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool seen = i % static_cast<std::size_t>(c.s) == 0 || i % 3 != 1;
    values[i] = c.mask == 1 ? std::cos(static_cast<double>(i)) : seen ? 1 : 0;
  }
  return values;
}

// The four inputs; q, k and v lie as [N, L, heads, E], as a linear layer gives them.
SmallGraph attention_graph(const AttentionCase& c) {
  SmallGraph small;
  const auto input = [&](const char* name, std::int64_t length, std::int64_t heads, std::int64_t width) {
    const ValueId flat = small.weight(name, {kSamples, length, heads, width});
    return small.call("aten::transpose.int", {flat, whole(1), whole(2)});
  };
  const ValueId q = input("q", c.l, c.heads, kWidth), k = input("k", c.s, c.key_heads, kWidth),
                v = input("v", c.s, c.key_heads, kValues);
  Arg mask;
  if (c.mask > 0) {
    const Shape shape = c.mask == 1   ? Shape{1, c.s}
                        : c.mask == 2 ? Shape{kSamples, 1, c.l, c.s}
                                      : Shape{c.heads, c.l, c.s};
    const auto count = static_cast<std::size_t>(elements_of(shape, 1));
    mask = small.constant("mask", shape, c.mask == 1 ? DType::kFloat64 : DType::kBool, mask_values(c, count));
  }
  small.call("aten::scaled_dot_product_attention",
             {q, k, v, mask, c.rate, c.causal, {}, c.heads != c.key_heads && c.key_heads > 1});
  return small;
}

// One sample's and head's result for one position, from its definition.
std::vector<double> attended(const AttentionCase& c, const SmallGraph& small, std::int64_t n, std::int64_t h,
                             std::int64_t l) {
  const std::int64_t kh = h * c.key_heads / c.heads;
  const auto at = [&](std::size_t w, std::int64_t length, std::int64_t heads, std::int64_t width, std::int64_t i,
                      std::int64_t head, std::int64_t e) {
    return small.weights[w][static_cast<std::size_t>(((n * length + i) * heads + head) * width + e)];
  };
  std::vector<double> kept(static_cast<std::size_t>(kSamples * c.heads * c.l * c.s), 1);
  if (c.rate > 0) fill_dropout_mask(kept.data(), kept.size(), c.rate, 12345, 3, 7);
  std::vector<double> out(kValues, 0);
  double total = 0;
  for (std::int64_t s = 0; s < c.s; ++s) {
    double score = 0;
    for (std::int64_t e = 0; e < kWidth; ++e) {
      score += at(0, c.l, c.heads, kWidth, l, h, e) * at(1, c.s, c.key_heads, kWidth, s, kh, e) / 2;
    }
    const auto place = c.mask == 2 ? (n * c.l + l) * c.s + s : (h * c.l + l) * c.s + s;
    if (c.mask == 1) score += small.weights[3][static_cast<std::size_t>(s)];
    const bool hidden = c.mask > 1 && small.weights[3][static_cast<std::size_t>(place)] == 0;
    if ((c.causal && s > l) || hidden) continue;
    const double weight = std::exp(score);
    total += weight;
    const double k = kept[static_cast<std::size_t>(((n * c.heads + h) * c.l + l) * c.s + s)];
    for (std::int64_t e = 0; e < kValues; ++e) {
      out[static_cast<std::size_t>(e)] += k * weight * at(2, c.s, c.key_heads, kValues, s, kh, e);
    }
  }
  for (double& v : out) v /= total;
  return out;
}

}  // namespace

TEST_CASE("attention is what its definition says, and so are its gradients") {
  for (const AttentionCase& c : attention_cases()) {
    CAPTURE(c.name);
    const SmallGraph small = attention_graph(c);
    const Outcome outcome = run_training(small);
    CHECK(outcome.sizes == Dims{kSamples, c.heads, c.l, kValues});
    for (std::int64_t n = 0; n < kSamples; ++n) {
      for (std::int64_t h = 0; h < c.heads; ++h) {
        for (std::int64_t l = 0; l < c.l; ++l) {
          const std::vector<double> wanted = attended(c, small, n, h, l);
          for (std::int64_t e = 0; e < kValues; ++e) {
            const auto at = static_cast<std::size_t>(((n * c.heads + h) * c.l + l) * kValues + e);
            CHECK(outcome.output[at] == Approx(wanted[static_cast<std::size_t>(e)]).epsilon(1e-9).margin(1e-12));
          }
        }
      }
    }
    check_gradients(small);
    check_float(small);
  }
}

// As torch has it since 2.5: such a position learns nothing, and gives nothing.
TEST_CASE("a position that sees nothing attends to nothing") {
  const bool added = GENERATE(false, true);
  const double rate = GENERATE(0.0, 0.4);
  CAPTURE(added, rate);
  SmallGraph small;
  const ValueId q = small.weight("q", {1, 1, 3, 4}), k = small.weight("k", {1, 1, 5, 4}),
                v = small.weight("v", {1, 1, 5, 6});
  std::vector<double> mask(15, added ? 0 : 1);
  for (std::size_t s = 5; s < 10; ++s) mask[s] = added ? -INFINITY : 0;
  const ValueId m = small.constant("mask", {3, 5}, added ? DType::kFloat64 : DType::kBool, mask);
  small.call("aten::scaled_dot_product_attention", {q, k, v, m, rate, false, {}, false});
  for (const Outcome& outcome : {run_training(small), run_in_float(small)}) {
    for (std::size_t i = 0; i < 18; ++i) CHECK((outcome.output[i] == 0) == (i / 6 == 1));
    for (std::size_t e = 0; e < 12; ++e) CHECK((outcome.gradients[0][e] == 0) == (e / 4 == 1));
    for (const std::size_t w : {1, 2}) {
      for (const double slope : outcome.gradients[w]) CHECK(std::isfinite(slope));
    }
  }
  check_gradients(small);
  small.weights[1][0] = NAN;  // is not hidden: the first position sees it
  CHECK(std::isnan(run_training(small).output[0]));
}

TEST_CASE("attention of a tensor to itself, and of parts of one tensor") {
  SmallGraph small;
  const ValueId packed = small.weight("x", {2, 5, 3, 2, 4});  // N, L, which, heads, E
  const ValueId turned = small.call("aten::permute", {packed, Ints{2, 0, 3, 1, 4}});
  small.call("aten::unbind.int", {turned, whole(0)}, 3);
  const ValueId q = small.output(0), k = small.output(1), v = small.output(2);
  const ValueId y = small.call("aten::scaled_dot_product_attention", {q, k, v, {}, 0.0, true, 0.3, false});
  small.call("aten::scaled_dot_product_attention", {y, y, y, {}, 0.0, false, {}, false});
  check_gradients(small);
  check_float(small);
}

}  // namespace hfta::fusion::cpu::testing
