#pragma once
/// Pointwise operations over stretches of memory without gaps. `team`: who shares the work; null: the caller alone.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

enum class Unary {
  kRelu,
  kTanh,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kSilu,
  kExp,
  kLeakyRelu,
  kElu,
  kScale,
  kShift,
  kSqrt,
  kSquare,
  kCube,
  kLog,
  kAbs,
  kReciprocal,
  kReciprocalSqrt,
  kPower,
  kSoftplus,  ///< p: beta
  kMish,
  kHardsigmoid,
  kHardswish,
  kAtLeast,  ///< Not less than p; gradients pass where x is p.
  kAtMost,
  kOver,  ///< Not less than p; gradients do not pass where x is p.
  kUnder,
};
enum class Binary { kAdd, kSubtract, kMultiply, kDivide };

/// y = f(x); `p` is the op's own number (slope, alpha, factor).
void apply(Team* team, Unary op, double p, const float* x, float* y, std::int64_t n);
void apply(Team* team, Unary op, double p, const double* x, double* y, std::int64_t n);
/// dx = or += dy f'(x), where y = f(x).
void apply_slope(Team* team, Unary op, double p, const float* x, const float* y, const float* dy, float* dx,
                 std::int64_t n, bool add);
void apply_slope(Team* team, Unary op, double p, const double* x, const double* y, const double* dy, double* dx,
                 std::int64_t n, bool add);
/// Whether f and f' share most of their work, which is worth the memory that keeps f' for backward. Such ops have no
/// number of their own.
[[nodiscard]] bool has_costly_slope(Unary op);
/// y = f(x) and slope = f'(x), of an op that has a costly slope.
void apply_with_slope(Team* team, Unary op, const float* x, float* y, float* slope, std::int64_t n);
void apply_with_slope(Team* team, Unary op, const double* x, double* y, double* slope, std::int64_t n);

/// y = a op (scale * b); a and b advance by 1 or stand still (step 0).
void combine(Team* team, Binary op, double scale, const float* a, std::int64_t a_step, const float* b,
             std::int64_t b_step, float* y, std::int64_t n);
void combine(Team* team, Binary op, double scale, const double* a, std::int64_t a_step, const double* b,
             std::int64_t b_step, double* y, std::int64_t n);

/// y = or += scale * a * b; what is null counts as 1.
void multiply(Team* team, double scale, const float* a, const float* b, float* y, std::int64_t n, bool add);
void multiply(Team* team, double scale, const double* a, const double* b, double* y, std::int64_t n, bool add);

}  // namespace hfta::fusion::cpu
