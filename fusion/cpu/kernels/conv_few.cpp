#include "fusion/cpu/kernels/conv_few.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"
#include "fusion/simd/vector.hpp"

namespace hfta::fusion::cpu {
namespace {

static_assert(kFewOutputs == simd::kLanes);

// Sums that are made at once: as many as registers hold beside a row of weights and one more.
template <typename R>
constexpr std::int64_t kAtOnce = R::kBytes == 64   ? 12
                                 : R::kBytes == 32 ? 6
                                                   : 2;

// sum + x * y
template <typename V>
inline __attribute__((always_inline)) V with(const V& sum, typename V::Element x, const V& y) {
  using Part = typename V::Part;
  return V::of(
      sum, y, [x](const Part& a, const Part& b) __attribute__((always_inline)) { return a + x * b; });
}

template <typename V>
inline __attribute__((always_inline)) V at_least_zero(const V& v) {
  using Part = typename V::Part;
  return V::of(
      v, v, [](const Part& a, const Part&) __attribute__((always_inline))->Part { return a < Part{} ? Part{} : a; });
}

// kCount pixels of the outputs in a stretch.
template <std::int64_t kCount, typename V, typename At, typename T>
inline __attribute__((always_inline)) void some_pixels(const FewPixels<T>& row, const At& at, const T* source,
                                                       const T* weights, const T* bias, bool relu, bool add,
                                                       T* result) {
  V sums[kCount];
  for (std::int64_t p = 0; p < kCount; ++p) {
    if (bias != nullptr) sums[p] = at(bias);
    if (add) sums[p] += at(result + p * row.ld);
  }
  const std::int64_t* const terms = row.terms.data();
  const auto count = static_cast<std::int64_t>(row.terms.size());
  for (std::int64_t t = 0; t < count; ++t) {
    const V w = V::load(weights + t * row.width);
    const T* const from = source + terms[t];
    simd::for_each_index<kCount>([&](auto p) __attribute__((always_inline)) {
      sums[p] = with(sums[p], from[static_cast<std::int64_t>(p) * row.step], w);
    });
  }
  for (std::int64_t p = 0; p < kCount; ++p) at.store(result + p * row.ld, relu ? at_least_zero(sums[p]) : sums[p]);
}

// visit(constant count, first) for all of n, as many at once as kMost.
template <std::int64_t kMost, typename Visit>
inline __attribute__((always_inline)) void in_groups(std::int64_t n, Visit visit, std::int64_t first = 0) {
  for (; first + kMost <= n; first += kMost) visit(std::integral_constant<std::int64_t, kMost>(), first);
  if constexpr (kMost > 1) {
    if (first < n) in_groups<(kMost + 1) / 2>(n, visit, first);
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void forward(R, const FewPixels<T>& row, const T* source, const T* weights,
                                                   const T* bias, bool relu, bool add, std::int64_t outputs,
                                                   T* result) {
  using V = simd::Lanes<T, R::kBytes>;
  simd::for_each_stretch<V>(
      outputs, [&](auto at) __attribute__((always_inline)) {
        in_groups<kAtOnce<R>>(
            row.pixels, [&](auto count, std::int64_t p) __attribute__((always_inline)) {
              some_pixels<count.value, V>(row, at, source + p * row.step, weights + at.i, bias, relu, add,
                                          result + p * row.ld);
            });
      });
}

// kCount terms for the outputs in a stretch.
template <std::int64_t kCount, typename V, typename At, typename T>
inline __attribute__((always_inline)) void some_terms(const FewPixels<T>& row, const At& at, const std::int64_t* terms,
                                                      const T* source, const T* dy, T* sums) {
  V parts[kCount];
  for (std::int64_t p = 0; p < row.pixels; ++p) {
    const V d = at(dy + p * row.ld);
    const T* const from = source + p * row.step;
    simd::for_each_index<kCount>([&](auto t)
                                     __attribute__((always_inline)) { parts[t] = with(parts[t], from[terms[t]], d); });
  }
  for (std::int64_t t = 0; t < kCount; ++t) {
    T* const to = sums + t * row.width + at.i;
    (V::load(to) + parts[t]).store(to);
  }
}

template <typename R, typename T>
inline __attribute__((always_inline)) void gradient(R, const FewPixels<T>& row, const T* source, const T* dy,
                                                    std::int64_t outputs, T* sums) {
  using V = simd::Lanes<T, R::kBytes>;
  simd::for_each_stretch<V>(
      outputs, [&](auto at) __attribute__((always_inline)) {
        in_groups<kAtOnce<R>>(
            static_cast<std::int64_t>(row.terms.size()), [&](auto count,
                                                             std::int64_t t) __attribute__((always_inline)) {
              some_terms<count.value, V>(row, at, row.terms.data() + t, source, dy, sums + t * row.width);
            });
      });
}

}  // namespace

void few_forward(const FewPixels<float>& row, const float* source, const float* weights, const float* bias, bool relu,
                 bool add, std::int64_t outputs, float* result) {
  simd::multiversion([&](auto r) { forward(r, row, source, weights, bias, relu, add, outputs, result); });
}
void few_forward(const FewPixels<double>& row, const double* source, const double* weights, const double* bias,
                 bool relu, bool add, std::int64_t outputs, double* result) {
  simd::multiversion([&](auto r) { forward(r, row, source, weights, bias, relu, add, outputs, result); });
}
void few_gradient(const FewPixels<float>& row, const float* source, const float* dy, std::int64_t outputs,
                  float* sums) {
  simd::multiversion([&](auto r) { gradient(r, row, source, dy, outputs, sums); });
}
void few_gradient(const FewPixels<double>& row, const double* source, const double* dy, std::int64_t outputs,
                  double* sums) {
  simd::multiversion([&](auto r) { gradient(r, row, source, dy, outputs, sums); });
}

}  // namespace hfta::fusion::cpu
