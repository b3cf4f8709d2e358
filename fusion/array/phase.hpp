#pragma once
/// What an array keeps for each phase of its steps (Recipe::phases), or for the one phase that they have.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/phases.hpp"

namespace hfta::fusion {

/// One phase, and what runs it.
struct PhaseOfStep {
  Recipe recipe;  ///< The recipe of the phase by itself.
  Graph graph;    ///< The graph with the phase's objective.
  SpecializedGraph alone, training = {};
  std::vector<bool> owned = {};             ///< By weight: owned_weights of this phase alone.
  std::vector<int> group_of = {};           ///< By weight: groups_of_weights.
  std::optional<ExecutorModel> model = {};  ///< Refers to the rest.
  std::unique_ptr<Executor> executor = nullptr;
};
using PhasesOfStep = std::vector<std::unique_ptr<PhaseOfStep>>;

/// The phases' recipes, graphs and groups; `training`, model and executor are unset. `graph`: the model's. Throws
/// Error{kConfig} that begins with Phase::where for a phase whose loss depends on none of its parameters.
[[nodiscard]] PhasesOfStep phases_of(const Graph& graph, const Recipe& recipe);

/// By weight: whether slots own it in any phase; it is theirs then in all of them, as Weight::per_slot says.
[[nodiscard]] std::vector<bool> owned_in(const PhasesOfStep& phases);

/// The weights of each phase that SlotStore keeps optimizer states for.
[[nodiscard]] std::vector<Trained> trained_in(const PhasesOfStep& phases);

}  // namespace hfta::fusion
