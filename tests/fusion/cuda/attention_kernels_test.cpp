// Attention's kernels, run on the CPU by fake/cuda_runtime.h, against sums written out in long double.
#include "fusion/cuda/attention_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

// Of [slots, samples, heads, rows, features]. In memory each number of rows lies as [slots, samples, rows, heads,
// width], where a tensor has `features` of the width, from `from` on: as parts of one projection lie.
template <typename T>
struct Tensor {
  AttentionShape shape;
  unsigned rows, features, width, from;
  std::vector<T> numbers;

  Tensor(const AttentionShape& all, unsigned rows_of_head, unsigned features_of_row, bool packed)
      : shape(all),
        rows(rows_of_head),
        features(features_of_row),
        width(packed ? features + 3 : features),
        from(packed ? 2 : 0),
        numbers(std::size_t{all.slots} * all.samples * all.heads * rows * width, std::numeric_limits<T>::quiet_NaN()) {}

  [[nodiscard]] std::size_t place(std::size_t head, std::size_t row, std::size_t feature) const {
    const std::size_t sample = head / shape.heads, of_sample = head % shape.heads;
    return ((sample * rows + row) * shape.heads + of_sample) * width + from + feature;
  }
  [[nodiscard]] T at(std::size_t head, std::size_t row, std::size_t feature) const {
    return numbers[place(head, row, feature)];
  }
  template <typename Number = T>
  [[nodiscard]] AttentionRows<Number> all() const {
    const std::int64_t row = std::int64_t{shape.heads} * width, sample = row * rows;
    return {const_cast<Number*>(numbers.data()) + from, sample * shape.samples, sample, width, row};
  }
  void fill(std::uint32_t node) {
    std::vector<double> drawn(numbers.size());
    fill_normal(drawn.data(), drawn.size(), 1, node, 3);
    for (std::size_t i = 0; i < drawn.size(); ++i) numbers[i] = static_cast<T>(drawn[i]);
  }
};

template <typename T>
struct Case {
  AttentionShape shape;
  Tensor<T> q, k, v, dy, y, dq, dk, dv;
  std::vector<T> log_sums;

  explicit Case(const AttentionShape& all, bool packed = false)
      : shape(all),
        q(all, all.queries, all.key_features, packed),
        k(all, all.keys, all.key_features, packed),
        v(all, all.keys, all.value_features, packed),
        dy(all, all.queries, all.value_features, packed),
        y(dy),
        dq(q),
        dk(k),
        dv(v),
        log_sums(std::size_t{all.slots} * all.samples * all.heads * all.queries, std::numeric_limits<T>::quiet_NaN()) {
    std::uint32_t node = 0;
    for (Tensor<T>* tensor : {&q, &k, &v, &dy}) tensor->fill(node++);
  }
  void run() {
    const AttentionInput<T> in{q.template all<const T>(), k.template all<const T>(), v.template all<const T>()};
    std::vector<T> workspace(log_sums.size(), std::numeric_limits<T>::quiet_NaN());
    attention(shape, in, y.all(), log_sums.data(), nullptr);
    attention_backward(shape, in, {y.template all<const T>(), dy.template all<const T>(), log_sums.data()},
                       {dq.all(), dk.all(), dv.all()}, workspace.data(), nullptr);
  }
};

// One head in long double.
struct Head {
  std::vector<long double> y, dq, dk, dv, log_sums;
};

template <typename T>
Head written_out(const Case<T>& all, std::size_t head) {
  const std::size_t n = all.shape.queries, keys = all.shape.keys, e = all.shape.key_features,
                    v = all.shape.value_features;
  Head out{std::vector<long double>(n * v), std::vector<long double>(n * e), std::vector<long double>(keys * e),
           std::vector<long double>(keys * v), std::vector<long double>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t seen = all.shape.causal ? std::min(i + 1, keys) : keys;
    std::vector<long double> weights(seen), by_weights(seen);
    long double sum = 0, product = 0;
    for (std::size_t j = 0; j < seen; ++j) {
      long double score = 0;
      for (std::size_t f = 0; f < e; ++f)
        score += static_cast<long double>(all.q.at(head, i, f)) * all.k.at(head, j, f);
      sum += weights[j] = std::exp(score * all.shape.scale);
      for (std::size_t f = 0; f < v; ++f) {
        by_weights[j] += static_cast<long double>(all.dy.at(head, i, f)) * all.v.at(head, j, f);
      }
    }
    out.log_sums[i] = std::log(sum);
    for (std::size_t j = 0; j < seen; ++j) product += (weights[j] /= sum) * by_weights[j];
    for (std::size_t j = 0; j < seen; ++j) {
      const long double by_score = weights[j] * (by_weights[j] - product) * all.shape.scale;
      for (std::size_t f = 0; f < e; ++f) {
        out.dq[i * e + f] += by_score * all.k.at(head, j, f);
        out.dk[j * e + f] += by_score * all.q.at(head, i, f);
      }
      for (std::size_t f = 0; f < v; ++f) {
        out.y[i * v + f] += weights[j] * all.v.at(head, j, f);
        out.dv[j * v + f] += weights[j] * all.dy.at(head, i, f);
      }
    }
  }
  return out;
}

// The farthest that a head's numbers are from those wanted, beside 1 and the wanted number.
template <typename T>
double apart(const Tensor<T>& found, const std::vector<long double>& wanted, std::size_t head) {
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const long double by = found.at(head, i / found.features, i % found.features) - wanted[i];
    const auto relative = static_cast<double>(std::abs(by) / (1 + std::abs(wanted[i])));
    most = std::isnan(relative) ? relative : std::max(most, relative);
    if (std::isnan(most)) break;
  }
  return most;
}

template <typename T>
void check(const AttentionShape& shape, bool packed, double within) {
  CAPTURE(shape.queries, shape.keys, shape.key_features, shape.value_features, shape.heads, shape.causal, packed);
  Case<T> all(shape, packed);
  all.run();
  for (std::size_t head = 0; head < std::size_t{shape.slots} * shape.samples * shape.heads; ++head) {
    const Head wanted = written_out(all, head);
    CHECK(apart(all.y, wanted.y, head) < within);
    CHECK(apart(all.dq, wanted.dq, head) < within);
    CHECK(apart(all.dk, wanted.dk, head) < within);
    CHECK(apart(all.dv, wanted.dv, head) < within);
    for (std::size_t i = 0; i < shape.queries; ++i) {
      CHECK(static_cast<double>(all.log_sums[head * shape.queries + i]) ==
            Approx(static_cast<double>(wanted.log_sums[i])).epsilon(within).margin(within));
    }
  }
}

template <typename T>
bool same(const Tensor<T>& a, const Tensor<T>& b, std::size_t head) {
  for (std::size_t i = 0; i < std::size_t{a.rows} * a.features; ++i) {
    if (a.at(head, i / a.features, i % a.features) != b.at(head, i / a.features, i % a.features)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("attention's kernels give results and gradients") {
  struct Sizes {
    unsigned queries, keys, key_features, value_features;
  };
  const std::vector<Sizes> each = {{32, 32, 16, 16}, {1, 1, 1, 1},    {1, 7, 4, 4},     {7, 1, 8, 3},
                                   {5, 9, 16, 20},   {33, 31, 9, 16}, {8, 40, 32, 32},  {3, 3, 33, 64},
                                   {70, 20, 16, 7},  {17, 64, 64, 5}, {2, 3, 128, 100}, {40, 70, 128, 4}};
  for (const Sizes& sizes : each) {
    for (const bool causal : {false, true}) {
      const bool wide = sizes.key_features > 32;  // many lanes that meet often, which takes the fake long
      const AttentionShape shape{
          1, wide ? 1U : 2U, 2, sizes.queries, sizes.keys, sizes.key_features, sizes.value_features, 0.3, causal};
      check<double>(shape, causal, 1e-13);
      check<float>(shape, !causal, 2e-5);
    }
  }
}

TEST_CASE("attention's kernels take long sequences in parts") {
  const bool causal = GENERATE(false, true);
  check<float>({1, 1, 1, 70, 66, 64, 64, 0.125, causal}, false, 2e-5);
  check<double>({1, 1, 1, 260, 40, 9, 2, 0.25, causal}, false, 1e-13);
  check<double>({1, 1, 1, 20, 300, 9, 2, 0.25, causal}, false, 1e-13);
  check<float>({1, 1, 1, 530, 530, 8, 8, 0.25, causal}, false, 2e-5);
}

TEST_CASE("attention's kernels give a head the same beside others and alone") {
  const bool causal = GENERATE(false, true);
  for (const unsigned features : {6U, 16U, 40U}) {
    CAPTURE(causal, features);
    AttentionShape shape{5, 3, 2, 12, 19, features, features, 0.5, causal};
    Case<float> all(shape), clean(shape);
    clean.run();
    constexpr std::size_t kBad = 7;
    for (Tensor<float>* tensor : {&all.q, &all.k, &all.v, &all.dy}) {
      for (std::size_t i = 0; i < std::size_t{tensor->rows} * features; ++i) {
        tensor->numbers[tensor->place(kBad, i / features, i % features)] =
            i % 2 == 0 ? std::nanf("") : std::numeric_limits<float>::infinity();
      }
    }
    all.run();
    for (std::size_t head = 0; head < 30; ++head) {
      for (const auto tensor : {&Case<float>::y, &Case<float>::dq, &Case<float>::dk, &Case<float>::dv}) {
        CHECK(same(all.*tensor, clean.*tensor, head) == (head != kBad));
      }
    }
    CHECK(std::isnan(all.y.at(kBad, 0, 0)));
    shape.slots = 1;  // the first slot by itself
    Case<float> alone(shape);
    for (const auto tensor : {&Case<float>::q, &Case<float>::k, &Case<float>::v, &Case<float>::dy}) {
      std::vector<float>& numbers = (alone.*tensor).numbers;
      std::copy_n((clean.*tensor).numbers.begin(), numbers.size(), numbers.begin());
    }
    alone.run();
    for (std::size_t head = 0; head < 6; ++head) {
      for (const auto tensor : {&Case<float>::y, &Case<float>::dq, &Case<float>::dk, &Case<float>::dv}) {
        CHECK(same(alone.*tensor, clean.*tensor, head));
      }
    }
  }
}

TEST_CASE("what a query does not see has no effect on it, though it is NaN") {
  const unsigned features = GENERATE(3U, 16U, 40U);
  const AttentionShape shape{1, 3, 1, 12, 12, features, features, 0.5, true};
  Case<float> clean(shape), keys(shape), queries(shape);
  for (std::size_t head = 0; head < 3; ++head) {
    for (std::size_t f = 0; f < features; ++f) {
      keys.k.numbers[keys.k.place(head, 9, f)] = keys.v.numbers[keys.v.place(head, 9, f)] = std::nanf("");
      queries.q.numbers[queries.q.place(head, 2, f)] = queries.dy.numbers[queries.dy.place(head, 2, f)] = std::nanf("");
    }
  }
  for (Case<float>* each : {&clean, &keys, &queries}) each->run();
  for (std::size_t head = 0; head < 3; ++head) {
    for (std::size_t row = 0; row < 12; ++row) {
      const auto equal = [&](Tensor<float> Case<float>::*tensor, const Case<float>& to) {
        return (clean.*tensor).at(head, row, 0) == (to.*tensor).at(head, row, 0);
      };
      CHECK(equal(&Case<float>::y, keys) == (row < 9));
      CHECK(equal(&Case<float>::dq, keys) == (row < 9));
      CHECK(equal(&Case<float>::dk, queries) == (row > 2));
      CHECK(equal(&Case<float>::dv, queries) == (row > 2));
    }
  }
}

TEST_CASE("attention of scores that are very large, or all -infinity") {
  Case<float> all({1, 1, 1, 2, 9, 1, 1, 1, false});
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t j = 0; j < 9; ++j) {
    all.k.numbers[j] = 1e4F * static_cast<float>(j);
    all.v.numbers[j] = static_cast<float>(j);
  }
  all.q.numbers = {1, -1};
  all.run();
  CHECK(all.y.numbers == std::vector<float>{8, 0});
  all.k.numbers.assign(9, infinity);
  all.q.numbers = {-1, 1};
  all.run();
  CHECK(all.y.numbers[0] == 0);  // sees nothing
  CHECK(std::isnan(all.y.numbers[1]));
}

TEST_CASE("attention's gradients are left alone where they are not wanted") {
  const AttentionShape shape{1, 2, 1, 4, 5, 6, 7, 1, false};
  Case<double> all(shape), some(shape);
  all.run();
  const AttentionInput<double> in{some.q.all<const double>(), some.k.all<const double>(), some.v.all<const double>()};
  std::vector<double> workspace(some.log_sums.size());
  attention(shape, in, some.y.all(), some.log_sums.data(), nullptr);
  const AttentionResult<double> result{some.y.all<const double>(), some.dy.all<const double>(), some.log_sums.data()};
  attention_backward(shape, in, result, {{}, {}, some.dv.all()}, workspace.data(), nullptr);
  CHECK(some.dv.numbers == all.dv.numbers);
  attention_backward(shape, in, result, {some.dq.all(), {}, {}}, workspace.data(), nullptr);
  CHECK(some.dq.numbers == all.dq.numbers);
  attention_backward(shape, in, result, {{}, some.dk.all(), {}}, workspace.data(), nullptr);
  CHECK(some.dk.numbers == all.dk.numbers);
}

}  // namespace hfta::fusion::cuda
