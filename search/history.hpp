#pragma once
/// The history of a study: what a draw may know of the trials before it.
///
/// A study's rounds are numbered. A draw made when `seen` rounds were over knows the epochs that trials trained in
/// rounds 0 to seen-1, and which trials had ended by then, and nothing else. The store keeps `seen` with the trial, so
/// that the draw can be made again.

#include <optional>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::search {

/// A trial as a later draw sees it.
struct SeenTrial {
  trials::Params params;
  /// The value that it had after epochs 1, 2, ...: that epoch's, or the best up to it, as the study selects. NaN or
  /// infinite where it diverged.
  std::vector<double> curve = {};
  /// The values it would have if it ended now, one per objective: those of the last epoch of `curve` that is finite.
  std::vector<double> values = {};
  std::optional<trials::State> ended = {};  ///< kComplete, kPruned or kFail; unset: it has not ended.

  /// The first objective's of `values`; nullopt if there are none.
  [[nodiscard]] std::optional<double> value() const { return trials::first_of(values); }
};

/// Every earlier draw, in order, including trials that another program asked for.
using History = std::vector<SeenTrial>;

}  // namespace hfta::search
