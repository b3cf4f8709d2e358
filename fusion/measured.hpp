#pragma once
/// What measuring ways to run a graph found: plain data, which is remembered and recorded. Without torch.

#include <string>
#include <utility>
#include <vector>

#include "fusion/lowering.hpp"

namespace hfta::fusion {

/// Time of one candidate: seconds in which `workers` chunks make one training step each, side by side.
struct Measured {
  Lowering lowering = {};
  double wave_seconds = 0;
};

/// Seconds in which an array of that width makes one step: ceil(ceil(width/c)/workers) waves.
[[nodiscard]] double step_seconds(const Measured& candidate, int width);

/// Where choices come from.
enum class ChoiceOrigin {
  kMeasured,     ///< Measured now.
  kRemembered,   ///< Measured by an earlier study on this machine.
  kRecalled,     ///< Taken over from an earlier run of the study.
  kNotMeasured,  ///< The first candidate was taken.
};
inline constexpr ChoiceOrigin kChoiceOrigins[] = {ChoiceOrigin::kMeasured, ChoiceOrigin::kRemembered,
                                                  ChoiceOrigin::kRecalled, ChoiceOrigin::kNotMeasured};
/// "measured", "remembered", "recalled", "not measured"
[[nodiscard]] inline const char* name_of(ChoiceOrigin origin) {
  switch (origin) {
    case ChoiceOrigin::kMeasured:
      return "measured";
    case ChoiceOrigin::kRemembered:
      return "remembered";
    case ChoiceOrigin::kRecalled:
      return "recalled";
    case ChoiceOrigin::kNotMeasured:
      return "not measured";
  }
  return "";
}

/// All that was measured for one graph, recipe and device; enough to choose for any width.
struct MeasuredChoices {
  std::vector<Measured> candidates = {};
  ChoiceOrigin how = ChoiceOrigin::kNotMeasured;
  bool complete = false;  ///< No candidate was left out for lack of budget.
  /// Lowerings that could not be run, with the reason: one does not fit, or an op cannot run so. Not stored.
  std::vector<std::pair<Lowering, std::string>> failed = {};

  /// The fastest for `width` slots, by step_seconds. Ties go to the earlier candidate. Deterministic.
  [[nodiscard]] const Measured& best_for(int width) const;
  /// Predicted seconds per step of one slot in an array of that width; 0 if nothing was measured.
  [[nodiscard]] double seconds_per_slot_step(int width) const;
};

}  // namespace hfta::fusion
