#pragma once
/// The phases of a step (Recipe::phases), each as if it were alone. Without torch.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// The number of phases of a step, at least 1.
[[nodiscard]] std::size_t phase_count(const Recipe& recipe);

/// The recipe of one phase: its loss's options, its optimizer and groups, and no phases.
[[nodiscard]] Recipe recipe_of_phase(const Recipe& recipe, std::size_t phase);

/// A slot's numbers of one phase; refers to `hyper`.
struct PhaseNumbers {
  const OptimizerHyper& optimizer;
  const std::vector<OptimizerHyper>& groups;
  const std::optional<double>& clip_norm;
  std::optional<double> clip_weights = {};
};
[[nodiscard]] PhaseNumbers numbers_of_phase(const SlotHyper& hyper, std::size_t phase);

/// By Graph::weights: whether the graph trains it and the phase names it.
[[nodiscard]] std::vector<bool> trained_in_phase(const Recipe& recipe, std::size_t phase, const Graph& graph);

/// The graph in which parameters that no phase names are not trained.
[[nodiscard]] Graph with_phases_trained(Graph graph, const Recipe& recipe);

/// The model's graph with the phase's loss as its objective, in which the phase's parameters alone are trained.
[[nodiscard]] Graph graph_of_phase(Graph model, const Recipe& recipe, std::size_t phase);

/// Whether the phase has a turn behind the batch at `place` of its epoch.
[[nodiscard]] bool has_turn(const Recipe& recipe, std::size_t phase, std::int64_t place);

/// `parameters`: all names that a model's parameters have. Throws Error{kConfig} that begins with the phase's `where`
/// for a pattern that means none of them; the nearest are named. Throws one that begins with a group's `where` for a
/// group of a phase that has none of the phase's parameters. `graph`: the model's, which knows what is tied.
void check_phases(const std::vector<Phase>& phases, const std::vector<std::string>& parameters, const Graph& graph);

}  // namespace hfta::fusion
