#include "fusion/optimizers/accumulate.hpp"

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

template <typename T>
void add(T* __restrict sum, const T* __restrict gradient, double weight, std::size_t n) {
  const auto factor = static_cast<T>(weight);
  simd::multiversion([&] {
    for (std::size_t i = 0; i < n; ++i) sum[i] += gradient[i] * factor;
  });
}

template <typename T>
void take(T* __restrict gradient, T* __restrict sum, double weight, std::size_t n) {
  const auto divisor = static_cast<T>(weight == 0 ? 1 : weight);
  simd::multiversion([&] {
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] = sum[i] / divisor;
      sum[i] = 0;
    }
  });
}

}  // namespace

void add_gradient(float* sum, const float* gradient, double weight, std::size_t n) { add(sum, gradient, weight, n); }
void add_gradient(double* sum, const double* gradient, double weight, std::size_t n) { add(sum, gradient, weight, n); }
void take_mean(float* gradient, float* sum, double weight, std::size_t n) { take(gradient, sum, weight, n); }
void take_mean(double* gradient, double* sum, double weight, std::size_t n) { take(gradient, sum, weight, n); }

}  // namespace hfta::fusion
