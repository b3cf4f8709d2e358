#pragma once
/// Maxima and means over windows of images that lie channels last. A team shares images; null: the caller does all.

#include <array>
#include <cstdint>
#include <vector>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// Window of one output row (or column): `count` input rows from `first` on, clipped to the image.
struct Window {
  std::int64_t first = 0, count = 0;
  std::int64_t divisor = 1;  ///< Rows that a mean counts, padding included if it counts.
};

struct PoolShape {
  std::int64_t n = 0, channels = 0;
  std::array<std::int64_t, 2> in = {}, step = {1, 1};  ///< Height, width; from one row of a window to the next.
  std::array<std::vector<Window>, 2> windows;          ///< By output row, by output column.
  double divisor = 0;                                  ///< Divisor of all means; 0: each window has its own.

  [[nodiscard]] std::int64_t outputs() const;  ///< Elements of the output, of all images and channels.
};

/// `where` (null: not wanted) gets the position in the clipped window of each maximum: the first of equal ones, or a
/// NaN.
void max_pool(Team* team, const PoolShape& shape, const float* x, float* y, std::uint16_t* where);
void max_pool(Team* team, const PoolShape& shape, const double* x, double* y, std::uint16_t* where);
/// dx = or += dy where the maxima were.
void max_pool_backward(Team* team, const PoolShape& shape, const float* dy, const std::uint16_t* where, float* dx,
                       bool add);
void max_pool_backward(Team* team, const PoolShape& shape, const double* dy, const std::uint16_t* where, double* dx,
                       bool add);

void mean_pool(Team* team, const PoolShape& shape, const float* x, float* y);
void mean_pool(Team* team, const PoolShape& shape, const double* x, double* y);
void mean_pool_backward(Team* team, const PoolShape& shape, const float* dy, float* dx, bool add);
void mean_pool_backward(Team* team, const PoolShape& shape, const double* dy, double* dx, bool add);

}  // namespace hfta::fusion::cpu
