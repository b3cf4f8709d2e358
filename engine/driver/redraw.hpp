#pragma once
/// Draws of a method that learns, made again from what the store says that each of them had seen.

#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "storage/store.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// One draw, as it is and as it is drawn again.
struct Redraw {
  int number = 0;  ///< Of the trial.
  trials::Params stored, drawn;
};

/// Every trial of the study that a method drew by what it had seen, in the order of draws; empty for methods that do
/// not learn. Trials that another program changed since may come out otherwise. Throws as the store does.
[[nodiscard]] std::vector<Redraw> redraw(const StudyConfig& config, storage::Store& store);

}  // namespace hfta::engine
