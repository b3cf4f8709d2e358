#pragma once
/// The keys of choices that a trainer makes now, and whether choices from elsewhere run on its device.

#include <string>

#include "engine/fused/choices_json.hpp"
#include "engine/fused/trainer_setup.hpp"
#include "fusion/graph.hpp"
#include "fusion/recipe.hpp"

namespace hfta::engine {

/// ChoiceKey::graph: everything of a task that choices depend on. `graph`: the one that its arrays train.
[[nodiscard]] std::string graph_key(const fusion::Graph& graph, const fusion::Recipe& recipe);
/// The key of choices that are made now, for that graph_key() and width.
[[nodiscard]] ChoiceKey choice_key(const TrainerSetup& setup, std::string graph, int width);
/// Whether this trainer's arrays can run by all candidates of `kept`.
[[nodiscard]] bool are_runnable(const TrainerSetup& setup, const KeptChoices& kept);

}  // namespace hfta::engine
