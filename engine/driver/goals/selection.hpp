#pragma once
/// Selects the epoch that a trial's value is taken from (`metric.select`).

#include <optional>

#include "engine/config.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Whether the value of a new epoch replaces its trial's value, `before`: always, or, where the best epoch is selected,
/// if it is better.
[[nodiscard]] inline bool is_selected(const StudyConfig& config, double value, const std::optional<double>& before) {
  return !config.select_best || !before || trials::better(value, *before, config.objectives.front().goal);
}

}  // namespace hfta::engine
