// Layer norm's kernels, run on the CPU by fake/cuda_runtime.h, against sums written out in long double.
#include "fusion/cuda/norm_kernels.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 2;
constexpr double kEps = 1e-3;

template <typename T>
struct Results {
  std::vector<T> y, means, rstds, dx, dweight, dbias;
};

template <typename T>
struct Case {
  std::size_t rows, features;
  std::vector<T> x, dy, weight, bias;

  Case(std::size_t rows_of_slot, std::size_t all_features)
      : rows(rows_of_slot),
        features(all_features),
        x(kSlots * rows * features),
        dy(x.size()),
        weight(kSlots * features),
        bias(weight.size()) {
    std::uint32_t node = 0;
    for (auto* tensor : {&x, &dy, &weight, &bias}) fill_normal(tensor->data(), tensor->size(), 1, node++, 3);
  }
};

template <typename T>
Results<T> by_kernels(const Case<T>& all, bool affine) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto blank = [&](std::size_t n) { return std::vector<T>(n, nan); };
  Results<T> out{blank(all.x.size()), blank(kSlots * all.rows), blank(kSlots * all.rows),
                 blank(all.x.size()), blank(all.weight.size()), blank(all.weight.size())};
  const NormRows<T> rows{all.x.data(),
                         affine ? all.weight.data() : nullptr,
                         affine ? all.bias.data() : nullptr,
                         kSlots,
                         all.rows,
                         all.features,
                         kEps};
  std::vector<T> workspace = blank(layer_norm_workspace(all.rows, all.features, kSlots));
  layer_norm(rows, out.y.data(), out.means.data(), out.rstds.data(), nullptr);
  layer_norm_backward(rows, all.dy.data(), out.means.data(), out.rstds.data(),
                      {out.dx.data(), affine ? out.dweight.data() : nullptr, affine ? out.dbias.data() : nullptr},
                      workspace.data(), nullptr);
  return out;
}

// The same in long double.
Results<long double> written_out(const Case<double>& all, bool affine) {
  const std::size_t n = all.features;
  Results<long double> out;
  out.dweight.assign(all.weight.size(), 0);
  out.dbias.assign(all.weight.size(), 0);
  for (std::size_t r = 0; r < kSlots * all.rows; ++r) {
    const double *x = &all.x[r * n], *dy = &all.dy[r * n];
    const std::size_t slot = r / all.rows;
    const auto weight = [&](std::size_t k) { return affine ? static_cast<long double>(all.weight[slot * n + k]) : 1; };
    long double mean = 0, variance = 0, g = 0, gh = 0;
    for (std::size_t k = 0; k < n; ++k) mean += static_cast<long double>(x[k]) / n;
    for (std::size_t k = 0; k < n; ++k) variance += (x[k] - mean) * (x[k] - mean) / n;
    const long double rstd = 1 / std::sqrt(variance + kEps);
    for (std::size_t k = 0; k < n; ++k) {
      const long double h = (x[k] - mean) * rstd;
      g += dy[k] * weight(k) / n;
      gh += dy[k] * weight(k) * h / n;
      out.dweight[slot * n + k] += dy[k] * h;
      out.dbias[slot * n + k] += dy[k];
    }
    for (std::size_t k = 0; k < n; ++k) {
      const long double h = (x[k] - mean) * rstd;
      out.y.push_back(h * weight(k) + (affine ? all.bias[slot * n + k] : 0));
      out.dx.push_back(rstd * (dy[k] * weight(k) - g - h * gh));
    }
  }
  return out;
}

template <typename T>
void check_near(const std::vector<T>& found, const std::vector<long double>& wanted, double within) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(static_cast<double>(found[i]) == Approx(static_cast<double>(wanted[i])).epsilon(within).margin(within));
  }
}

}  // namespace

TEST_CASE("layer norm's kernels give results and gradients") {
  for (const std::size_t features : {2, 31, 32, 33, 70}) {
    for (const std::size_t rows : {1, 5, 20, 129}) {
      if (rows == 129 && features != 33) continue;  // two parts
      for (const bool affine : {false, true}) {
        CAPTURE(features, rows, affine);
        const Case<double> all(rows, features);
        const Results<long double> wanted = written_out(all, affine);
        const Results<double> found = by_kernels(all, affine);
        check_near(found.y, wanted.y, 1e-12);
        check_near(found.dx, wanted.dx, 1e-12);
        if (!affine) continue;
        check_near(found.dweight, wanted.dweight, 1e-12);
        check_near(found.dbias, wanted.dbias, 1e-12);
        Case<float> narrow(rows, features);  // the same numbers, rounded
        for (auto member : {&Case<float>::x, &Case<float>::dy, &Case<float>::weight, &Case<float>::bias}) {
          const auto& from = member == &Case<float>::x        ? all.x
                             : member == &Case<float>::dy     ? all.dy
                             : member == &Case<float>::weight ? all.weight
                                                              : all.bias;
          for (std::size_t i = 0; i < from.size(); ++i) (narrow.*member)[i] = static_cast<float>(from[i]);
        }
        check_near(by_kernels(narrow, true).y, wanted.y, 1e-4);
        check_near(by_kernels(narrow, true).dweight, wanted.dweight, 1e-4);
      }
    }
  }
}

TEST_CASE("layer norm's kernels keep a slot's NaN to it") {
  Case<float> all(6, 40);
  const Results<float> clean = by_kernels(all, true);
  for (std::size_t i = 0; i < 6 * 40; ++i) all.x[i] = all.dy[i] = std::nanf("");
  for (std::size_t k = 0; k < 40; ++k) all.weight[k] = std::nanf("");
  const Results<float> found = by_kernels(all, true);
  for (std::size_t i = 6 * 40; i < all.x.size(); ++i) CHECK((found.y[i] == clean.y[i] && found.dx[i] == clean.dx[i]));
  for (std::size_t k = 40; k < 80; ++k) {
    CHECK((found.dweight[k] == clean.dweight[k] && found.dbias[k] == clean.dbias[k]));
  }
  CHECK(std::isnan(found.y[0]));
}

TEST_CASE("layer norm without rows has gradients of zero") {
  const Case<double> none(0, 3);
  const Results<double> found = by_kernels(none, true);
  CHECK(found.dweight == std::vector<double>(6, 0));
  CHECK(found.dbias == std::vector<double>(6, 0));
}

}  // namespace hfta::fusion::cuda
