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

// T: float, double.

/// y = scale times the sum.
template <typename T>
void sum_fold(Team* team, const Fold& fold, const T* x, double scale, T* y);
/// x = or += scale y, for every element that was summed up.
template <typename T>
void spread_fold(Team* team, const Fold& fold, const T* y, double scale, T* x, bool add);

/// y = the root of the sum of squares; of one element, its magnitude.
template <typename T>
void norm_fold(Team* team, const Fold& fold, const T* x, T* y);
/// dx = or += dy x / y, or dy times 0 where y is 0, as LibTorch's norm_backward().
template <typename T>
void norm_fold_backward(Team* team, const Fold& fold, const T* dy, const T* x, const T* y, T* dx, bool add);

/// y = the largest element, `at` (null: not wanted) the position of the first such. A NaN is larger than any number.
template <typename T>
void max_fold(Team* team, const Fold& fold, const T* x, T* y, std::int64_t* at);
/// dx = or += dy where y was found: at `at`, or, if that is null, shared evenly by all that equal it.
template <typename T>
void max_fold_backward(Team* team, const Fold& fold, const T* dy, const T* x, const T* y, const std::int64_t* at, T* dx,
                       bool add);

}  // namespace hfta::fusion::cpu
