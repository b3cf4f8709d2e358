#pragma once
/// What a draw may know of the trials before it.
///
/// A study's rounds are numbered. A draw made when `seen` rounds were over knows the epochs that trials trained in
/// rounds 0 to seen-1, and which trials had ended by then, and nothing else: a fact that the store keeps with the
/// trial, so that the draw can be made again from it.

#include <optional>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::search {

/// A trial as a later draw sees it.
struct SeenTrial {
  trials::Params params;
  std::vector<double> values;   ///< The study's metric after epochs 1, 2, ...; NaN or infinite where it diverged.
  std::optional<double> value;  ///< Its value, were it to end now: of its last epoch, or its best. Finite.
  std::optional<trials::State> ended;  ///< kComplete, kPruned or kFail; unset: it is still in the running.
};

/// Of every earlier draw, in order; those that another program asked for are among them.
using History = std::vector<SeenTrial>;

}  // namespace hfta::search
