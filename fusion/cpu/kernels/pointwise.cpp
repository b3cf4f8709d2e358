#include "fusion/cpu/kernels/pointwise.hpp"

#include <cmath>
#include <numbers>

#include "fusion/cpu/kernels/activations.hpp"
#include "fusion/cpu/kernels/elements.hpp"
#include "fusion/simd/exp.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename T>
inline __attribute__((always_inline)) T hard_sigmoid(T x) {
  const T shifted = x + T{3}, low = shifted < T{0} ? T{0} : shifted;
  return (low > T{6} ? T{6} : low) / T{6};
}

// f(x) of each op, as a callable that the loops are made with.
template <typename T, typename Visit>
inline __attribute__((always_inline)) void with_function(Unary op, T p, Visit visit) {
  switch (op) {
    case Unary::kRelu:
      return visit([](T x) { return x < T{0} ? T{0} : x; });
    case Unary::kTanh:
      return visit([](T x) { return tangent(x); });
    case Unary::kSigmoid:
      return visit([](T x) { return sigmoid(x); });
    case Unary::kGelu:
      return visit([](T x) { return gelu(x).value; });
    case Unary::kGeluTanh:
      return visit([](T x) { return gelu_tanh(x).value; });
    case Unary::kSilu:
      return visit([](T x) { return silu(x).value; });
    case Unary::kExp:
      return visit([](T x) { return simd::vector_exp(x); });
    case Unary::kLeakyRelu:
      return visit([p](T x) { return x > T{0} ? x : x * p; });
    case Unary::kElu:
      return visit([p](T x) { return x > T{0} ? x : p * std::expm1(x); });
    case Unary::kScale:
      return visit([p](T x) { return x * p; });
    case Unary::kShift:
      return visit([p](T x) { return x + p; });
    case Unary::kSqrt:
      return visit([](T x) { return std::sqrt(x); });
    case Unary::kSquare:
      return visit([](T x) { return x * x; });
    case Unary::kCube:
      return visit([](T x) { return x * x * x; });
    case Unary::kLog:
      return visit([](T x) { return std::log(x); });
    case Unary::kAbs:
      return visit([](T x) { return std::abs(x); });
    case Unary::kReciprocal:
      return visit([](T x) { return T{1} / x; });
    case Unary::kReciprocalSqrt:
      return visit([](T x) { return T{1} / std::sqrt(x); });
    case Unary::kPower:
      return visit([p](T x) { return std::pow(x, p); });
    case Unary::kSoftplus:  // a line from 20 on, as torch's threshold has it
      return visit([p](T x) { return x * p > T{20} ? x : std::log1p(std::exp(x * p)) / p; });
    case Unary::kMish:
      return visit([](T x) { return mish(x).value; });
    case Unary::kHardsigmoid:
      return visit([](T x) { return hard_sigmoid(x); });
    case Unary::kHardswish:
      return visit([](T x) { return x * hard_sigmoid(x); });
    case Unary::kAtLeast:
    case Unary::kOver:
      return visit([p](T x) { return x < p ? p : x; });
    case Unary::kAtMost:
    case Unary::kUnder:
      return visit([p](T x) { return x > p ? p : x; });
  }
}

// f'(x), given x and y = f(x).
template <typename T, typename Visit>
inline __attribute__((always_inline)) void with_slope(Unary op, T p, Visit visit) {
  switch (op) {
    case Unary::kRelu:
      return visit([](T, T y) { return y > T{0} ? T{1} : T{0}; });
    case Unary::kTanh:
      return visit([](T, T y) { return T{1} - y * y; });
    case Unary::kSigmoid:
      return visit([](T, T y) { return y * (T{1} - y); });
    case Unary::kGelu:
      return visit([](T x, T) { return gelu(x).slope; });
    case Unary::kGeluTanh:
      return visit([](T x, T) { return gelu_tanh(x).slope; });
    case Unary::kSilu:
      return visit([](T x, T) { return silu(x).slope; });
    case Unary::kExp:
      return visit([](T, T y) { return y; });
    case Unary::kLeakyRelu:
      return visit([p](T x, T) { return x > T{0} ? T{1} : p; });
    case Unary::kElu:
      return visit([p](T x, T y) { return x > T{0} ? T{1} : y + p; });
    case Unary::kScale:
      return visit([p](T, T) { return p; });
    case Unary::kShift:
      return visit([](T, T) { return T{1}; });
    case Unary::kSqrt:
      return visit([](T, T y) { return T(0.5) / y; });
    case Unary::kSquare:
      return visit([](T x, T) { return x + x; });
    case Unary::kCube:
      return visit([](T x, T) { return T{3} * x * x; });
    case Unary::kLog:
      return visit([](T x, T) { return T{1} / x; });
    case Unary::kAbs:
      return visit([](T x, T) { return x > T{0} ? T{1} : x < T{0} ? T{-1} : T{0}; });
    case Unary::kReciprocal:
      return visit([](T, T y) { return -y * y; });
    case Unary::kReciprocalSqrt:
      return visit([](T, T y) { return T(-0.5) * y * y * y; });
    case Unary::kPower:
      return visit([p](T x, T) { return p == T{0} ? T{0} : p * std::pow(x, p - T{1}); });
    case Unary::kSoftplus:
      return visit([p](T x, T) { return x * p > T{20} ? T{1} : sigmoid(x * p); });
    case Unary::kMish:
      return visit([](T x, T) { return mish(x).slope; });
    case Unary::kHardsigmoid:
      return visit([](T x, T) { return x > T{-3} && x < T{3} ? T(1.0F / 6.0F) : T{0}; });  // a float's, as in ATen
    case Unary::kHardswish:
      return visit([](T x, T) { return x <= T{-3} ? T{0} : x < T{3} ? x / T{3} + T(0.5) : T{1}; });
    case Unary::kAtLeast:
      return visit([p](T x, T) { return x >= p ? T{1} : T{0}; });
    case Unary::kAtMost:
      return visit([p](T x, T) { return x <= p ? T{1} : T{0}; });
    case Unary::kOver:
      return visit([p](T x, T) { return x > p ? T{1} : T{0}; });
    case Unary::kUnder:
      return visit([p](T x, T) { return x < p ? T{1} : T{0}; });
  }
}

template <typename T>
inline __attribute__((always_inline)) void apply_typed(Unary op, double p, const T* __restrict x, T* __restrict y,
                                                       std::int64_t n) {
  with_function<T>(
      op, static_cast<T>(p), [&](auto f) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
      });
}

// Whether the op chooses between its input and a constant. What was not chosen gets no gradient, even where that of y
// is infinite or NaN: torch's backward chooses, too.
constexpr bool chooses(Unary op) {
  switch (op) {
    case Unary::kRelu:
    case Unary::kHardsigmoid:
    case Unary::kHardswish:
    case Unary::kAtLeast:
    case Unary::kAtMost:
    case Unary::kOver:
    case Unary::kUnder:
      return true;
    default:
      return false;
  }
}

template <typename T>
inline __attribute__((always_inline)) void slope_typed(Unary op, double p, const T* x, const T* y, const T* dy, T* dx,
                                                       std::int64_t n, bool add) {
  const auto write = [&](auto product) __attribute__((always_inline)) {
    if (add) {
      for (std::int64_t i = 0; i < n; ++i) dx[i] += product(i);
    } else {
      for (std::int64_t i = 0; i < n; ++i) dx[i] = product(i);
    }
  };
  with_slope<T>(
      op, static_cast<T>(p), [&](auto f) __attribute__((always_inline)) {
        if (chooses(op)) {
          write([=](std::int64_t i) __attribute__((always_inline)) {
            const T slope = f(x[i], y[i]);
            return slope == T{0} ? T{0} : dy[i] * slope;
          });
        } else {
          write([=](std::int64_t i) __attribute__((always_inline)) { return dy[i] * f(x[i], y[i]); });
        }
      });
}

template <typename T>
inline __attribute__((always_inline)) void both_typed(Unary op, const T* __restrict x, T* __restrict y,
                                                      T* __restrict slope, std::int64_t n) {
  with_value_and_slope<T>(
      op, [&](auto f) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < n; ++i) {
          const ValueAndSlope<T> both = f(x[i]);
          y[i] = both.value;
          slope[i] = both.slope;
        }
      });
}

template <typename T, typename F>
inline __attribute__((always_inline)) void combine_with(F f, const T* a, std::int64_t a_step, const T* b,
                                                        std::int64_t b_step, T* __restrict y, std::int64_t n) {
  if (a_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (a_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[0]);
  } else if (b_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[0], b[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[0], b[0]);
  }
}

template <typename T>
inline __attribute__((always_inline)) void combine_typed(Binary op, double scale, const T* a, std::int64_t a_step,
                                                         const T* b, std::int64_t b_step, T* y, std::int64_t n) {
  const T s = static_cast<T>(scale);
  switch (op) {
    case Binary::kAdd:
      return combine_with<T>([s](T p, T q) { return p + s * q; }, a, a_step, b, b_step, y, n);
    case Binary::kSubtract:
      return combine_with<T>([s](T p, T q) { return p - s * q; }, a, a_step, b, b_step, y, n);
    case Binary::kMultiply:
      return combine_with<T>([s](T p, T q) { return p * (s * q); }, a, a_step, b, b_step, y, n);
    case Binary::kDivide:
      return combine_with<T>([s](T p, T q) { return p / (s * q); }, a, a_step, b, b_step, y, n);
  }
}

template <typename T>
inline __attribute__((always_inline)) void multiply_typed(double scale, const T* a, const T* b, T* y, std::int64_t n,
                                                          bool add) {
  const T s = static_cast<T>(scale);
  if (b == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = add ? y[i] + s * a[i] : s * a[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = add ? y[i] + s * a[i] * b[i] : s * a[i] * b[i];
  }
}

}  // namespace

void apply(Team* team, Unary op, double p, const float* x, float* y, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        apply_typed(op, p, x + i, y + i, count);
      });
}
void apply(Team* team, Unary op, double p, const double* x, double* y, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        apply_typed(op, p, x + i, y + i, count);
      });
}
void apply_slope(Team* team, Unary op, double p, const float* x, const float* y, const float* dy, float* dx,
                 std::int64_t n, bool add) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        slope_typed(op, p, x + i, y + i, dy + i, dx + i, count, add);
      });
}
void apply_slope(Team* team, Unary op, double p, const double* x, const double* y, const double* dy, double* dx,
                 std::int64_t n, bool add) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        slope_typed(op, p, x + i, y + i, dy + i, dx + i, count, add);
      });
}
bool has_costly_slope(Unary op) {
  return op == Unary::kGelu || op == Unary::kGeluTanh || op == Unary::kSilu || op == Unary::kMish;
}
void apply_with_slope(Team* team, Unary op, const float* x, float* y, float* slope, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        both_typed(op, x + i, y + i, slope + i, count);
      });
}
void apply_with_slope(Team* team, Unary op, const double* x, double* y, double* slope, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        both_typed(op, x + i, y + i, slope + i, count);
      });
}
void combine(Team* team, Binary op, double scale, const float* a, std::int64_t a_step, const float* b,
             std::int64_t b_step, float* y, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        combine_typed(op, scale, a + i * a_step, a_step, b + i * b_step, b_step, y + i, count);
      });
}
void combine(Team* team, Binary op, double scale, const double* a, std::int64_t a_step, const double* b,
             std::int64_t b_step, double* y, std::int64_t n) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        combine_typed(op, scale, a + i * a_step, a_step, b + i * b_step, b_step, y + i, count);
      });
}
void multiply(Team* team, double scale, const float* a, const float* b, float* y, std::int64_t n, bool add) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        multiply_typed(scale, a + i, b == nullptr ? b : b + i, y + i, count, add);
      });
}
void multiply(Team* team, double scale, const double* a, const double* b, double* y, std::int64_t n, bool add) {
  share_elements(
      team, n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        multiply_typed(scale, a + i, b == nullptr ? b : b + i, y + i, count, add);
      });
}

}  // namespace hfta::fusion::cpu
