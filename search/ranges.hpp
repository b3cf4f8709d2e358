#pragma once
/// The parts of a distribution: the interval its values come from and the grid they are rounded to. Used by
/// space.cpp and choices.cpp.

#include <cmath>
#include <cstdint>
#include <optional>

#include "trials/space.hpp"

namespace hfta::search {

/// The largest |normal()| that CountedRandom can give: sqrt(-2 ln 2^-53) = 8.572, rounded up.
inline constexpr double kNormalReach = 8.6;

/// The interval of a bounded distribution, before rounding to multiples of q.
struct Interval {
  double low = 0, high = 0;  ///< Values, inclusive.
  double a = 0, b = 0;       ///< Bounds of the uniform draw: the ends themselves, or their logarithms.
  bool log = false;

  [[nodiscard]] double at(double u) const;                  ///< The value at fraction u in [0, 1] of the mass.
  [[nodiscard]] double mass(double from, double to) const;  ///< Proportional to the probability of from..to.
};

/// nullopt for constant, categorical and the normal kinds.
[[nodiscard]] std::optional<Interval> interval_of(const trials::Distribution& d);

/// The value of a normal kind for a standard normal z, before rounding to multiples of q.
[[nodiscard]] double normal_value(const trials::Distribution& d, double z);

/// Multiples k*q with first <= k <= last: those whose rounding cell overlaps low..high. W&B rounds to the nearest
/// multiple, so they may lie up to q/2 outside min..max.
struct Multiples {
  std::int64_t first = 0, last = 0;
};
[[nodiscard]] Multiples multiples_in(double low, double high, double q);

/// k * q as a number of the distribution's type; a q written in decimals gives decimals (3 * 0.1 is 0.3).
[[nodiscard]] trials::ParamValue multiple(const trials::Distribution& d, std::int64_t k);

/// The multiple of q nearest to x, half to even.
[[nodiscard]] std::int64_t nearest_multiple(double x, double q);

/// x rounded to the distribution's grid, between its ends where it has any; x itself where it has no grid. `interval`:
/// interval_of(d).
[[nodiscard]] trials::ParamValue on_grid(const trials::Distribution& d, const std::optional<Interval>& interval,
                                         double x);

}  // namespace hfta::search
