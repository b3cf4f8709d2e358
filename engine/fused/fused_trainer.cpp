#include "engine/fused/fused_trainer.hpp"

#include <algorithm>

#include "engine/fused/fused_array.hpp"
#include "engine/fused/translated.hpp"
#include "engine/topology/numa.hpp"
#include "fusion/gpu.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {
namespace {

std::int64_t frozen_count(const fusion::Graph& graph, const std::vector<std::string>& parameters) {
  std::int64_t count = 0;
  for (const fusion::Weight& weight : graph.weights) {
    const bool parameter = std::find(parameters.begin(), parameters.end(), weight.name) != parameters.end();
    if (parameter && !weight.trained) count += fusion::elements_of(weight.shape, 1);
  }
  return count;
}

std::vector<GroupPlan> groups_of(const PreparedTask& task) {
  const std::vector<fusion::ParameterGroup>& groups = task.spec.recipe.groups;
  const std::vector<std::int64_t> sizes = fusion::group_sizes(groups, task.graph);
  std::vector<GroupPlan> plans;
  for (std::size_t g = 0; g < groups.size(); ++g) plans.push_back({groups[g].params, sizes[g + 1]});
  return plans;
}

}  // namespace

FusedTrainer::FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock)
    : parts_(options), clock_(clock), choices_(parts_, files, clock) {}

// A guess, used until devices have trained: a GPU is taken for that many threads of a CPU.
DeviceFacts FusedTrainer::device_facts() const {
  constexpr int kThreadsOfGpu = 64;
  const TrainerSetup& setup = parts_.setup;
  DeviceFacts facts{setup.options().label, fusion::device_memory(setup.device()), kThreadsOfGpu};
  if (!setup.device().is_cpu()) return facts;
  facts.speed = setup.threads();
  facts.busy_slots = setup.threads();
  facts.threads = setup.threads();
  facts.cpus = setup.options().cpus;
  return facts;
}

std::optional<double> FusedTrainer::step_seconds(const std::string& partition, int slots) const {
  return choices_.step_seconds(partition, slots);
}

std::string FusedTrainer::recall(const std::string& partition, const std::string& choices_json) {
  return choices_.recall(partition, choices_json);
}

PartitionPlan FusedTrainer::plan(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  PartitionPlan plan;
  plan.width = parts_.memory.planned_width(task);
  plan.parameters = task.graph.parameter_count();
  plan.groups = groups_of(task);
  if (task.spec.model_file) {
    plan.frozen = frozen_count(task.graph, parts_.models.read(*task.spec.model_file).parameters());
    plan.model = parts_.models.facts(*task.spec.model_file);
    if (!task.spec.model_file->evaluation_name.empty()) {
      plan.evaluation = parts_.models.evaluation_facts(*task.spec.model_file);
    }
  }
  const Budgeted budget = parts_.memory.budgeted(task);
  plan.memory = budget.ways.front().need;
  plan.working = budget.ways.front().working;
  plan.budget = parts_.memory.plan(task, budget);
  plan.lowerings = fusion::op_notes(parts_.facts.trained_graph(task));
  plan.features = parts_.data.feature_plan(task);
  return plan;
}

std::vector<MeasuredWay> FusedTrainer::measure(const trials::Params& params, const Pause& pause) {
  return choices_.measure(prepare(params), pause);
}

std::unique_ptr<TrainerArray> FusedTrainer::open(const trials::Params& params, int width, double expected_epochs,
                                                 const Pause& pause) {
  const PreparedTask task = prepare(params);
  const TrainerOptions& options = parts_.setup.options();
  const KeepTo kept_to(options.cpus);
  parts_.facts.try_out(task);
  return translated(options.label, [&] {
    const KeptChoices& kept = choices_.choose(task, options.config.partition(params), expected_epochs, pause);
    return std::make_unique<FusedArray>(parts_, task, parts_.data.trained(task), kept,
                                        choices_.decided_width(kept, width), width);
  });
}

}  // namespace hfta::engine
