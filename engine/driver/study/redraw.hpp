#pragma once
/// Repeats the draws of a method that learns, from the store's record of the results that each draw had seen.

#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "storage/store.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// One draw: the stored parameters, and those of the repeated draw.
struct Redraw {
  int number = 0;  ///< Number of the trial.
  trials::Params stored, drawn;
};

/// Every configuration of the study that a method drew from results it had seen, by its first trial, in the order of
/// draws; empty for methods that do not learn. The repeated draws may differ if another program has changed trials
/// since. Throws as the store does.
[[nodiscard]] std::vector<Redraw> redraw(const StudyConfig& config, storage::Store& store);

}  // namespace hfta::engine
