#pragma once
/// Learning curves as far as they are known, and which of their values a model sees. Internal to freeze_thaw.

#include <algorithm>
#include <vector>

#include "search/freeze_thaw/curve_kernel.hpp"
#include "search/history.hpp"

namespace hfta::search::freeze_thaw {

/// A trial that has shown a value, or has failed.
struct Curve {
  int trial = 0;
  Vector x;                    ///< Its configuration.
  std::vector<double> values;  ///< Values after epochs 1, 2, ...; finite; smaller is better.
  bool ended = false;
  bool failed = false;  ///< It ended without a value of its last epoch.

  /// REQUIRES a value.
  [[nodiscard]] double least() const { return *std::min_element(values.begin(), values.end()); }
};

/// The curve of a trial, of which `values` are known; a value that is not finite is where it failed.
[[nodiscard]] Curve curve_of(int trial, Vector x, const std::vector<double>& values, bool ended, trials::Goal goal);

/// Whether the trial has ended with a value, but none of its epochs has a known value: it has no curve, and has not
/// failed. Trials of another program may be so.
[[nodiscard]] bool has_no_curve(const SeenTrial& trial);

struct CurveObservations {
  CurvePoints points;
  Vector y;  ///< Values, of mean 0 and variance 1; smaller is better.
};

/// Keeps at most `most` values: of each trial, after 1, 2, 3, 4, 6, ... epochs (half as many again each time), its last
/// and its best; where these are too many, its first, its best and its last; else its last and its best; else, of half
/// as many trials as there may be values, the last and the best: of the trials with the best values and, as many, every
/// so many of the others. Values far worse than usual count as less bad (gp::standardized()).
[[nodiscard]] CurveObservations observe(const std::vector<Curve>& curves, std::size_t most);

}  // namespace hfta::search::freeze_thaw
