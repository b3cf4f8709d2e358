// Batch norm's kernels, run on the CPU by fake/cuda_runtime.h, against sums written out in long double.
#include "fusion/cuda/batch_norm_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 2;
constexpr double kEps = 1e-3, kMomentum = 0.3;

// Rows of slots: one slot behind the other, or side by side.
struct Shape {
  std::size_t rows, features;
  bool side_by_side, relu;

  [[nodiscard]] std::size_t numbers() const { return kSlots * rows * features; }
  [[nodiscard]] std::size_t slot_stride() const { return side_by_side ? features : rows * features; }
  [[nodiscard]] std::size_t row_stride() const { return side_by_side ? kSlots * features : features; }
  [[nodiscard]] std::size_t at(std::size_t slot, std::size_t row, std::size_t feature) const {
    return slot * slot_stride() + row * row_stride() + feature;
  }
};

template <typename T>
struct Numbers {
  std::vector<T> x, dy, weight, bias, running_mean, running_variance;

  Numbers(const Shape& shape, double mean)
      : x(shape.numbers()),
        dy(x.size()),
        weight(kSlots * shape.features),
        bias(weight.size()),
        running_mean(weight.size()),
        running_variance(weight.size()) {
    std::uint32_t node = 0;
    for (auto* of : {&x, &dy, &weight, &bias, &running_mean, &running_variance}) {
      fill_normal(of->data(), of->size(), 1, node++, 3);
    }
    for (T& number : x) number += static_cast<T>(mean);
    for (T& number : running_variance) number = std::abs(number) + static_cast<T>(0.1);
  }
};

template <typename T>
struct Results {
  std::vector<T> y, running_mean, running_variance, dx, dweight, dbias;
};

template <typename T>
Results<T> by_kernels(const Shape& shape, const Numbers<T>& numbers, bool affine, bool own) {
  const auto blank = [](std::size_t n) { return std::vector<T>(n, std::numeric_limits<T>::quiet_NaN()); };
  const std::size_t all = numbers.weight.size();
  Results<T> out{blank(shape.numbers()), numbers.running_mean, numbers.running_variance,
                 blank(shape.numbers()), blank(all),           blank(all)};
  std::vector<T> means = numbers.running_mean, rstds(all),
                 workspace = blank(batch_norm_workspace(shape.rows, shape.features, kSlots));
  const BatchNormRows<T> in{numbers.x.data(),
                            shape.slot_stride(),
                            shape.row_stride(),
                            kSlots,
                            shape.rows,
                            shape.features,
                            affine ? numbers.weight.data() : nullptr,
                            affine ? numbers.bias.data() : nullptr,
                            shape.relu};
  const BatchNormStatistics<T> by{means.data(), rstds.data()};
  if (own) {
    batch_norm_statistics(in, kEps, by, {out.running_mean.data(), out.running_variance.data(), kMomentum},
                          workspace.data(), nullptr);
  } else {
    for (std::size_t i = 0; i < all; ++i) rstds[i] = 1 / std::sqrt(numbers.running_variance[i] + static_cast<T>(kEps));
  }
  batch_norm(in, by, out.y.data(), nullptr);
  batch_norm_backward(in, by, own, numbers.dy.data(),
                      {out.dx.data(), affine ? out.dweight.data() : nullptr, affine ? out.dbias.data() : nullptr},
                      workspace.data(), nullptr);
  return out;
}

// The same in long double.
Results<long double> written_out(const Shape& shape, const Numbers<double>& numbers, bool affine, bool own) {
  const auto n = static_cast<long double>(shape.rows);
  Results<long double> out;
  out.y.resize(shape.numbers());
  out.dx.resize(shape.numbers());
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    for (std::size_t f = 0; f < shape.features; ++f) {
      const std::size_t of = slot * shape.features + f;
      const long double weight = affine ? numbers.weight[of] : 1, bias = affine ? numbers.bias[of] : 0;
      const long double old_mean = numbers.running_mean[of], old_variance = numbers.running_variance[of];
      long double mean = 0, squares = 0, g_sum = 0, gh_sum = 0;
      for (std::size_t r = 0; r < shape.rows; ++r) mean += numbers.x[shape.at(slot, r, f)] / n;
      for (std::size_t r = 0; r < shape.rows; ++r) squares += std::pow(numbers.x[shape.at(slot, r, f)] - mean, 2.0L);
      out.running_mean.push_back(own ? old_mean + kMomentum * (mean - old_mean) : old_mean);
      out.running_variance.push_back(own ? old_variance + kMomentum * (squares / (n - 1) - old_variance)
                                         : old_variance);
      if (!own) mean = old_mean;
      const long double rstd = 1 / std::sqrt((own ? squares / n : old_variance) + kEps);
      const auto normal = [&](std::size_t r) { return (numbers.x[shape.at(slot, r, f)] - mean) * rstd; };
      const auto gradient = [&](std::size_t r) {
        const bool cut = shape.relu && normal(r) * weight + bias <= 0;
        return cut ? 0.0L : static_cast<long double>(numbers.dy[shape.at(slot, r, f)]);
      };
      for (std::size_t r = 0; r < shape.rows; ++r) {
        const long double y = normal(r) * weight + bias;
        out.y[shape.at(slot, r, f)] = shape.relu ? std::max(0.0L, y) : y;
        g_sum += gradient(r);
        gh_sum += gradient(r) * normal(r);
      }
      out.dweight.push_back(gh_sum);
      out.dbias.push_back(g_sum);
      for (std::size_t r = 0; r < shape.rows; ++r) {
        const long double through = own ? (g_sum + normal(r) * gh_sum) / n : 0;
        out.dx[shape.at(slot, r, f)] = rstd * weight * (gradient(r) - through);
      }
    }
  }
  return out;
}

template <typename T>
void check_near(const std::vector<T>& found, const std::vector<long double>& wanted, double within) {
  REQUIRE(found.size() == wanted.size());
  double apart = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto one =
        static_cast<double>(std::abs(static_cast<long double>(found[i]) - wanted[i]) / (1 + std::abs(wanted[i])));
    apart = std::isnan(one) ? one : std::max(apart, one);
    if (std::isnan(one)) break;
  }
  CHECK(apart <= within);
}

template <typename T>
void check_all(const Results<T>& found, const Results<long double>& wanted, bool affine, double within) {
  check_near(found.y, wanted.y, within);
  check_near(found.dx, wanted.dx, within);
  check_near(found.running_mean, wanted.running_mean, within);
  check_near(found.running_variance, wanted.running_variance, within);
  if (!affine) return;
  check_near(found.dweight, wanted.dweight, within);
  check_near(found.dbias, wanted.dbias, within);
}

}  // namespace

TEST_CASE("batch norm's kernels give results, gradients and running statistics") {
  // 128 rows are a part; more than 256 * 128 make larger parts.
  const auto [rows, features] = GENERATE(table<std::size_t, std::size_t>(
      {{2, 3}, {7, 31}, {8, 32}, {9, 33}, {64, 1}, {127, 5}, {128, 2}, {129, 2}, {700, 40}, {1100, 33}, {33000, 1}}));
  const bool side_by_side = GENERATE(false, true), relu = GENERATE(false, true);
  const bool affine = GENERATE(false, true), own = GENERATE(false, true);
  CAPTURE(rows, features, side_by_side, relu, affine, own);
  const Shape shape{rows, features, side_by_side, relu};
  const Numbers<double> numbers(shape, 0.5);
  check_all(by_kernels(shape, numbers, affine, own), written_out(shape, numbers, affine, own), affine, 1e-10);
}

TEST_CASE("batch norm's statistics hold far from zero, in float32") {
  const Shape shape{500, 3, false, false};
  const Numbers<float> narrow(shape, 3000);
  Numbers<double> wide(shape, 0);
  std::copy(narrow.x.begin(), narrow.x.end(), wide.x.begin());  // as float32 holds them
  std::copy(narrow.dy.begin(), narrow.dy.end(), wide.dy.begin());
  for (std::size_t i = 0; i < wide.weight.size(); ++i) {
    wide.weight[i] = narrow.weight[i];
    wide.bias[i] = narrow.bias[i];
    wide.running_mean[i] = narrow.running_mean[i];
    wide.running_variance[i] = narrow.running_variance[i];
  }
  // A rounding of the mean is 3000 * 6e-8, of numbers that are about 1 apart.
  check_all(by_kernels(shape, narrow, true, true), written_out(shape, wide, true, true), true, 5e-3);
  check_near(by_kernels(shape, narrow, true, true).running_variance,
             written_out(shape, wide, true, true).running_variance, 1e-5);
}

TEST_CASE("batch norm's kernels keep a slot's NaN to it, and show it behind a relu") {
  const Shape shape{300, 40, GENERATE(false, true), true};
  Numbers<float> numbers(shape, 0);
  const Results<float> clean = by_kernels(shape, numbers, true, true);
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t f = 0; f < shape.features; ++f) numbers.x[shape.at(0, r, f)] = std::nanf("");
  }
  const Results<float> found = by_kernels(shape, numbers, true, true);
  std::size_t other = 0;
  for (std::size_t r = 0; r < shape.rows; ++r) {
    for (std::size_t f = 0; f < shape.features; ++f) {
      const std::size_t at = shape.at(1, r, f);
      other += found.y[at] == clean.y[at] && found.dx[at] == clean.dx[at] ? 0 : 1;
    }
  }
  CHECK(other == 0);
  for (std::size_t f = 40; f < 80; ++f) CHECK(found.dweight[f] == clean.dweight[f]);
  CHECK(std::isnan(found.y[shape.at(0, 5, 3)]));
  CHECK(std::isnan(found.running_mean[3]));
}

}  // namespace hfta::fusion::cuda
