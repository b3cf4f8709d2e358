#include "fusion/array/phase.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/passes/phases.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/sharing.hpp"

namespace hfta::fusion {
namespace {

void check_reached(const Phase& phase, const PhaseOfStep& step) {
  for (std::size_t i = 0; i < step.owned.size(); ++i) {
    if (step.owned[i] && step.graph.weights[i].trained) return;
  }
  throw Error(ErrorKind::kConfig, fmt::format("{}found no trained parameter that '{}' depends on, wanted one",
                                              phase.where.empty() ? "" : phase.where + ": ", printable(phase.loss)));
}

}  // namespace

PhasesOfStep phases_of(const Graph& model, const Recipe& recipe) {
  PhasesOfStep phases;
  for (std::size_t p = 0; p < phase_count(recipe); ++p) {
    auto phase = std::make_unique<PhaseOfStep>();
    phase->recipe = recipe_of_phase(recipe, p);
    phase->graph = with_complete_arguments(graph_of_phase(model, recipe, p));
    if (!recipe.phases.empty()) phase->graph = with_statistics_of_objective(std::move(phase->graph));
    phase->alone = specialized(phase->graph, Purpose::kTraining);
    phase->owned = owned_weights(phase->alone);
    if (!recipe.phases.empty()) check_reached(recipe.phases[p], *phase);
    phase->group_of = groups_of_weights(phase->recipe.groups, phase->graph);
    phases.push_back(std::move(phase));
  }
  return phases;
}

std::vector<bool> owned_in(const PhasesOfStep& phases) {
  std::vector<bool> owned = phases.front()->owned;
  for (const auto& phase : phases) {
    for (std::size_t i = 0; i < owned.size(); ++i) owned[i] = owned[i] || phase->owned[i];
  }
  if (phases.size() == 1) return owned;
  for (const auto& phase : phases) {
    for (Graph* graph : {&phase->graph, &phase->alone.graph}) {
      for (std::size_t i = 0; i < owned.size(); ++i) graph->weights[i].per_slot = owned[i];
    }
  }
  return owned;
}

std::vector<Trained> trained_in(const PhasesOfStep& phases) {
  std::vector<Trained> trained;
  for (const auto& phase : phases) {
    Trained& own = trained.emplace_back(Trained{phase->recipe.optimizer, {}});
    for (const Weight& weight : phase->graph.weights) own.weights.push_back(weight.trained);
  }
  return trained;
}

}  // namespace hfta::fusion
