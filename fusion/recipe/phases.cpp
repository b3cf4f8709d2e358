#include "fusion/phases.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {

std::size_t phase_count(const Recipe& recipe) { return std::max<std::size_t>(recipe.phases.size(), 1); }

Recipe recipe_of_phase(const Recipe& recipe, std::size_t phase) {
  if (recipe.phases.empty()) return recipe;
  Recipe alone = recipe;
  const Phase& own = recipe.phases.at(phase);
  alone.loss_options.weighted = own.weighted;
  alone.optimizer = own.optimizer;
  alone.groups = own.groups;
  alone.phases.clear();
  return alone;
}

PhaseNumbers numbers_of_phase(const SlotHyper& hyper, std::size_t phase) {
  if (hyper.phases.empty()) return {hyper.optimizer, hyper.groups, hyper.clip_norm, std::nullopt};
  const PhaseHyper& own = hyper.phases.at(phase);
  return {own.optimizer, own.groups, own.clip_norm, own.clip_weights};
}

std::vector<bool> trained_in_phase(const Recipe& recipe, std::size_t phase, const Graph& graph) {
  std::vector<bool> trained;
  for (const Weight& weight : graph.weights) trained.push_back(weight.trained);
  if (recipe.phases.empty()) return trained;
  const std::vector<int> named = groups_of_weights({{recipe.phases.at(phase).params, ""}}, graph);
  for (std::size_t i = 0; i < named.size(); ++i) trained[i] = trained[i] && named[i] != 0;
  return trained;
}

Graph with_phases_trained(Graph graph, const Recipe& recipe) {
  std::vector<bool> any(graph.weights.size());
  for (std::size_t p = 0; p < phase_count(recipe); ++p) {
    const std::vector<bool> own = trained_in_phase(recipe, p, graph);
    for (std::size_t i = 0; i < own.size(); ++i) any[i] = any[i] || own[i];
  }
  for (std::size_t i = 0; i < any.size(); ++i) graph.weights[i].trained = any[i];
  return graph;
}

Graph graph_of_phase(Graph model, const Recipe& recipe, std::size_t phase) {
  Graph graph = with_loss(std::move(model), recipe, phase);
  const std::vector<bool> trained = trained_in_phase(recipe, phase, graph);
  for (std::size_t i = 0; i < trained.size(); ++i) graph.weights[i].trained = trained[i];
  return graph;
}

bool has_turn(const Recipe& recipe, std::size_t phase, std::int64_t place) {
  return recipe.phases.empty() || (place + 1) % recipe.phases.at(phase).every == 0;
}

void check_phases(const std::vector<Phase>& phases, const std::vector<std::string>& parameters, const Graph& graph) {
  for (const Phase& phase : phases) {
    check_groups({{phase.params, phase.where}}, parameters);
    check_groups(phase.groups, parameters);
    const std::vector<int> named = groups_of_weights({{phase.params, ""}}, graph);
    for (const ParameterGroup& group : phase.groups) {
      const std::vector<int> own = groups_of_weights({group}, graph);
      bool any = false;
      for (std::size_t i = 0; i < own.size(); ++i) any = any || (own[i] != 0 && named[i] != 0);
      if (any) continue;
      throw Error(ErrorKind::kConfig,
                  group.where + ": found parameters that the phase does not train, wanted some of " + phase.where);
    }
  }
}

}  // namespace hfta::fusion
