#pragma once
/// Sums, norms and largest elements along the middle one of three dimensions. A team shares the first one; null: the
/// caller does all.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// x [outer, n, inner] without gaps -> [outer, inner].
struct Fold {
  std::int64_t outer = 1, n = 1, inner = 1;
};

/// y = scale times the sum.
void sum_fold(Team* team, const Fold& fold, const float* x, double scale, float* y);
void sum_fold(Team* team, const Fold& fold, const double* x, double scale, double* y);
/// x = or += scale y, for every element that was summed up.
void spread_fold(Team* team, const Fold& fold, const float* y, double scale, float* x, bool add);
void spread_fold(Team* team, const Fold& fold, const double* y, double scale, double* x, bool add);

/// y = the root of the sum of squares; of one element, its magnitude.
void norm_fold(Team* team, const Fold& fold, const float* x, float* y);
void norm_fold(Team* team, const Fold& fold, const double* x, double* y);
/// dx = or += dy x / y, or dy times 0 where y is 0, as LibTorch's norm_backward().
void norm_fold_backward(Team* team, const Fold& fold, const float* dy, const float* x, const float* y, float* dx,
                        bool add);
void norm_fold_backward(Team* team, const Fold& fold, const double* dy, const double* x, const double* y, double* dx,
                        bool add);

/// y = the largest element, `at` (null: not wanted) the position of the first such. A NaN is larger than any number.
void max_fold(Team* team, const Fold& fold, const float* x, float* y, std::int64_t* at);
void max_fold(Team* team, const Fold& fold, const double* x, double* y, std::int64_t* at);
/// dx = or += dy where y was found: at `at`, or, if that is null, shared evenly by all that equal it.
void max_fold_backward(Team* team, const Fold& fold, const float* dy, const float* x, const float* y,
                       const std::int64_t* at, float* dx, bool add);
void max_fold_backward(Team* team, const Fold& fold, const double* dy, const double* x, const double* y,
                       const std::int64_t* at, double* dx, bool add);

}  // namespace hfta::fusion::cpu
