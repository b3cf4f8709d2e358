#pragma once
/// Which of its epochs a trial's value is of (`metric.select`).

#include <optional>

#include "engine/config.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Whether an epoch's value becomes its trial's, which is `before` until then: the last one does, or, where the best is
/// selected, one that is better.
[[nodiscard]] inline bool is_selected(const StudyConfig& config, double value, const std::optional<double>& before) {
  return !config.select_best || !before || trials::better(value, *before, config.objectives.front().goal);
}

}  // namespace hfta::engine
