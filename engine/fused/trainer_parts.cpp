#include "engine/fused/trainer_parts.hpp"

#include <string>
#include <utility>
#include <vector>

#include "engine/fused/inputs.hpp"
#include "engine/fused/task_check.hpp"
#include "fusion/layers.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/phases.hpp"

namespace hfta::engine {
namespace {

// The trained parameters; for a model of layers these are all of its parameters.
std::vector<std::string> trained_names(const fusion::Graph& graph) {
  std::vector<std::string> names;
  for (const fusion::Weight& weight : graph.weights) {
    if (weight.trained) names.push_back(weight.name);
  }
  return names;
}

std::vector<fusion::DType> input_types(const fusion::Graph& graph) {
  std::vector<fusion::DType> types;
  for (const fusion::ValueId id : graph.inputs) types.push_back(graph.values[static_cast<std::size_t>(id)].dtype);
  return types;
}

fusion::Graph graph_of_layers(const TaskSpec& spec, const fusion::Dataset& data) {
  const fusion::Shape input = with_batch(data.inputs.front().shape);
  return fusion::build_graph(spec.layers, input, spec.recipe.dtype);
}

const fusion::Shape& output_shape(const fusion::Graph& graph) {
  return graph.values[static_cast<std::size_t>(graph.outputs.at(0))].shape;
}

// Whether classes have to be found: [N, C] has one dimension for them; with more, the targets' shape says which.
bool asks_for_classes(const fusion::Recipe& recipe, const fusion::Graph& graph) {
  return fusion::info_of(recipe.loss).targets == fusion::Targets::kClasses && graph.outputs.size() == 1 &&
         output_shape(graph).size() >= 3;
}

// Finds the dimension of classes. Language models have them last; if both fit, they are where PyTorch wants them.
void find_classes(fusion::Recipe& recipe, const fusion::Graph& graph, const fusion::Shape& target) {
  const fusion::Shape& output = output_shape(graph);
  const fusion::Shape wanted = with_batch(target);
  fusion::Shape second = output, last(output.begin(), output.end() - 1);
  second.erase(second.begin() + 1);
  if (second != wanted && last == wanted) recipe.loss_options.class_dim = -1;
}

}  // namespace

TrainerParts::TrainerParts(const TrainerOptions& options)
    : setup(options),
      frozen(setup.device()),
      data(setup, frozen),
      facts(setup, frozen, data),
      memory(setup, data, facts) {}

PreparedTask TrainerParts::prepare(const trials::Params& params) {
  PreparedTask task{setup.config().task(params), {}, {}};
  if (task.spec.model_file) {
    task.graph = models.graph(*task.spec.model_file);
    task.input_types = input_types(task.graph);
    task.spec.data.x = in_input_order(task.spec, task.graph);
    if (task.graph.fixed_batch > 0) task.spec.drop_last = true;
  } else {
    task.graph = graph_of_layers(task.spec, data.splits(task.spec, {}).train);
  }
  if (asks_for_classes(task.spec.recipe, task.graph)) {
    find_classes(task.spec.recipe, task.graph, data.splits(task).train.target.shape);
  }
  std::vector<std::string> names = trained_names(task.graph);  // adapters are among them
  if (task.spec.model_file) {
    const std::vector<std::string>& own = models.read(*task.spec.model_file).parameters();
    names.insert(names.begin(), own.begin(), own.end());
  }
  fusion::check_groups(task.spec.recipe.groups, names);
  fusion::check_phases(task.spec.recipe.phases, names, task.graph);
  task.graph = fusion::with_phases_trained(std::move(task.graph), task.spec.recipe);
  task.spec.hyper.graph.clear();
  for (const fusion::Hyper& hyper : task.graph.hypers) task.spec.hyper.graph.push_back(hyper.value);
  return task;
}

}  // namespace hfta::engine
