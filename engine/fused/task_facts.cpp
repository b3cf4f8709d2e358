#include "engine/fused/task_facts.hpp"

#include <algorithm>

#include "engine/fused/choice_keys.hpp"
#include "engine/fused/translated.hpp"
#include "fusion/divided_batches.hpp"
#include "fusion/modes.hpp"
#include "fusion/staged.hpp"

namespace hfta::engine {

std::string TaskFacts::key_of(const PreparedTask& task) { return graph_key(trained_graph(task), task.spec.recipe); }

fusion::EpochOptions TaskFacts::epoch_options(const PreparedTask& task) {
  return {task.spec.order,          task.spec.drop_last, setup_.config().seed, task.graph.fixed_batch,
          task.graph.largest_batch, task.graph.limits,   may_mix_samples(task)};
}

// The graph is run once for all trials that have it. Layers of a config need no such run.
void TaskFacts::try_out(const PreparedTask& task) {
  const std::string graph = task.graph.signature();
  if (!task.spec.model_file || runnable_.contains(graph)) return;
  const fusion::Dataset& data = data_.splits(task).train;
  runnable_[graph] = translated(setup_.options().label, [&] {
    return fusion::check_runnable(task.graph, task.spec.recipe, task.spec.hyper, data, setup_.device());
  });
}

bool TaskFacts::mixes_samples(const PreparedTask& task) const {
  const auto known = runnable_.find(task.graph.signature());
  return known != runnable_.end() && known->second.mixes_samples;
}

bool TaskFacts::may_mix_samples(const PreparedTask& task) {
  if (!task.spec.model_file) return false;
  const std::string graph = task.graph.signature();
  const auto known = evaluated_apart_.find(graph);
  if (known != evaluated_apart_.end()) return !known->second;
  return !evaluated_apart_.emplace(graph, fusion::evaluates_samples_apart(task.graph)).first->second;
}

std::string TaskFacts::why_not_divided(const PreparedTask& task, std::span<const int> parts) {
  const std::int64_t samples = data_.splits(task).train.size;
  const std::int64_t batch = task.spec.recipe.batch_size;
  const std::int64_t batches[] = {std::min(batch, samples), task.spec.drop_last ? 0 : samples % batch};
  return fusion::why_not_divided(trained_graph(task), task.spec.recipe, parts, batches);
}

// Answers are kept: compiling stages takes time, and every trial asks.
const std::string& TaskFacts::why_not_staged(const PreparedTask& task) {
  const std::string key = key_of(task);
  const auto known = not_staged_.find(key);
  if (known != not_staged_.end()) return known->second;
  return not_staged_.emplace(key, fusion::why_not_staged(trained_graph(task), task.spec.recipe, setup_.ranks()))
      .first->second;
}

}  // namespace hfta::engine
