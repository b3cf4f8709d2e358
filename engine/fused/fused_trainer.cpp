#include "engine/fused/fused_trainer.hpp"

#include <c10/core/Device.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "engine/fused/fused_array.hpp"
#include "engine/fused/inputs.hpp"
#include "engine/fused/task_check.hpp"
#include "engine/fused/translated.hpp"
#include "engine/topology/numa.hpp"
#include "fusion/array.hpp"
#include "fusion/gpu.hpp"
#include "fusion/measure.hpp"
#include "fusion/modes.hpp"
#include "fusion/parameter_groups.hpp"
#include "fusion/phases.hpp"
#include "fusion/runnable.hpp"
#include "fusion/staged.hpp"

namespace hfta::engine {
namespace {

std::string ops_text(const fusion::Graph& graph) {
  std::string ops;
  for (const fusion::Node& node : graph.nodes) ops += node.op + ' ';
  return ops;
}

// `types`: what the numbers are read as.
DataFacts facts_of(const fusion::DataSource& source, const std::string& types, const std::string& fingerprint,
                   const std::filesystem::path& folder) {
  Fnv1a reading;
  reading.add(fusion::reading_of(source, folder) + types);
  const std::filesystem::path& train = source.train;
  const std::filesystem::path file = train.has_filename() ? train.filename() : train.parent_path().filename();
  return {source.name.empty() ? file.string() : source.name, fmt::format("{:016x}", reading.value()), fingerprint};
}

std::int64_t frozen_count(const fusion::Graph& graph, const std::vector<std::string>& parameters) {
  std::int64_t count = 0;
  for (const fusion::Weight& weight : graph.weights) {
    const bool parameter = std::find(parameters.begin(), parameters.end(), weight.name) != parameters.end();
    if (parameter && !weight.trained) count += fusion::elements_of(weight.shape, 1);
  }
  return count;
}

// Of a model of layers: its parameters, all of which are trained.
std::vector<std::string> trained_names(const fusion::Graph& graph) {
  std::vector<std::string> names;
  for (const fusion::Weight& weight : graph.weights) {
    if (weight.trained) names.push_back(weight.name);
  }
  return names;
}

std::vector<GroupPlan> groups_of(const PreparedTask& task) {
  const std::vector<fusion::ParameterGroup>& groups = task.spec.recipe.groups;
  const std::vector<std::int64_t> sizes = fusion::group_sizes(groups, task.graph);
  std::vector<GroupPlan> plans;
  for (std::size_t g = 0; g < groups.size(); ++g) plans.push_back({groups[g].params, sizes[g + 1]});
  return plans;
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

// "float32"; "float32 in bfloat16". Stores that were written when there was one precision say nothing of it.
std::string type_of(const fusion::Recipe& recipe) {
  const std::string dtype = name_of(recipe.dtype);
  return recipe.precision == fusion::Precision::kFloat32 ? dtype : dtype + " in " + name_of(recipe.precision);
}

fusion::TargetForm targets_of(const fusion::Recipe& recipe) {
  switch (fusion::info_of(recipe.loss).targets) {
    case fusion::Targets::kNone:
      return fusion::kNoTargets;
    case fusion::Targets::kClasses:
      return {fusion::TargetForm::Kind::kClasses, recipe.loss_options.ignore_index};
    default:
      return fusion::kNumberTargets;
  }
}

const fusion::Shape& output_shape(const fusion::Graph& graph) {
  return graph.values[static_cast<std::size_t>(graph.outputs.at(0))].shape;
}

// [N, C] has one dimension that can be the classes; of more, the targets' shape says which.
bool asks_for_classes(const fusion::Recipe& recipe, const fusion::Graph& graph) {
  return fusion::info_of(recipe.loss).targets == fusion::Targets::kClasses && graph.outputs.size() == 1 &&
         output_shape(graph).size() >= 3;
}

// Language models have classes last. Where both dimensions fit, they are where PyTorch wants them.
void find_classes(fusion::Recipe& recipe, const fusion::Graph& graph, const fusion::Shape& target) {
  const fusion::Shape& output = output_shape(graph);
  const fusion::Shape wanted = with_batch(target);
  fusion::Shape second = output, last(output.begin(), output.end() - 1);
  second.erase(second.begin() + 1);
  if (second != wanted && last == wanted) recipe.loss_options.class_dim = -1;
}

// With options only where they are not the defaults: studies that were begun before there were any recall their
// choices.
std::string loss_text(const fusion::Recipe& recipe) {
  std::string text = name_of(recipe.loss);
  const fusion::LossOptions& options = recipe.loss_options;
  for (const fusion::Phase& phase : recipe.phases) {
    text += fmt::format(" {} of {} by {}", phase.loss, join(phase.params), name_of(phase.optimizer));
  }
  if (options == fusion::LossOptions{}) return text;
  return fmt::format("{} ignore {} classes {} at {} positive {} log {} {} weighted {}", text, options.ignore_index,
                     options.class_weight.size(), options.class_dim, options.pos_weight.size(), options.log_input,
                     options.log_target, options.weighted);
}

std::vector<fusion::Lowering> lowerings_of(const std::vector<WayNeed>& ways) {
  std::vector<fusion::Lowering> all;
  all.reserve(ways.size());
  for (const WayNeed& way : ways) all.push_back(way.lowering);
  return all;
}

// Bytes of features that are kept: as the config says, or a quarter of the memory.
std::int64_t feature_budget(const TrainerOptions& options) {
  if (options.config.cache) return *options.config.cache / options.sharers;
  return fusion::device_memory(c10::Device(c10::kCPU)) / 4 / options.sharers;
}

}  // namespace

// The graph's signature would be long.
std::string FusedTrainer::graph_key(const PreparedTask& task) {
  const fusion::Recipe& recipe = task.spec.recipe;
  Fnv1a hash;
  hash.add(trained_graph(task).signature());
  return fmt::format("{}|{}|{}|batch {}|{:016x}", type_of(recipe), name_of(recipe.optimizer), loss_text(recipe),
                     recipe.batch_size, hash.value());
}

FusedTrainer::FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock)
    : options_(options),
      cores_(usable_cores()),
      cuda_graphs_(fusion::cuda_graphs(device())),
      files_(files),
      clock_(clock),
      cache_(files, options.cache),
      features_(feature_budget(options), threads()) {}

int FusedTrainer::threads() const {
  if (options_.threads) return *options_.threads;
  const int all = options_.config.threads.value_or(cores_);
  return std::max(1, all / options_.sharers);
}

LoadedData& FusedTrainer::load(const TaskSpec& spec, const std::vector<fusion::DType>& inputs) {
  const fusion::TargetForm targets = targets_of(spec.recipe);
  std::string types =
      fmt::format("|{}|{} {}", name_of(spec.recipe.dtype), static_cast<int>(targets.kind), targets.ignored);
  for (const fusion::DType dtype : inputs) types += std::string("|") + name_of(dtype);
  const std::string key = fusion::identity_of(spec.data) + types;
  const auto known = data_.find(key);
  if (known != data_.end()) return known->second;
  LoadedData data;
  data.host = fusion::load_data(spec.data, targets, options_.config.seed, options_.data_root, inputs);
  data_facts_.push_back(facts_of(spec.data, types, data.host.fingerprint, options_.config.folder));
  return data_.emplace(key, std::move(data)).first->second;
}

const TaskData& FusedTrainer::on_device(const PreparedTask& task) {
  LoadedData& data = load(task.spec, task.input_types);
  if (data.device) return *data.device;
  const auto moved = [&](const fusion::Dataset& part) {
    return fusion::to_device(part, task.graph, task.spec.recipe, device());
  };
  TaskData all{moved(data.host.train), {}, {}};
  if (data.host.validation) all.validation = moved(*data.host.validation);
  if (data.host.test) all.test = moved(*data.host.test);
  return data.device.emplace(std::move(all));
}

PreparedTask FusedTrainer::prepare(const trials::Params& params) {
  PreparedTask task{options_.config.task(params), {}, {}};
  if (task.spec.model_file) {
    task.graph = models_.graph(*task.spec.model_file);
    task.input_types = input_types(task.graph);
    task.spec.data.x = in_input_order(task.spec, task.graph);
    if (task.graph.fixed_batch > 0) task.spec.drop_last = true;
  } else {
    task.graph = graph_of_layers(task.spec, load(task.spec, {}).host.train);
  }
  if (asks_for_classes(task.spec.recipe, task.graph)) {
    find_classes(task.spec.recipe, task.graph, load(task.spec, task.input_types).host.train.target.shape);
  }
  std::vector<std::string> names = trained_names(task.graph);  // adapters are among them
  if (task.spec.model_file) {
    const std::vector<std::string>& own = models_.read(*task.spec.model_file).parameters();
    names.insert(names.begin(), own.begin(), own.end());
  }
  fusion::check_groups(task.spec.recipe.groups, names);
  fusion::check_phases(task.spec.recipe.phases, names);
  task.graph = fusion::with_phases_trained(std::move(task.graph), task.spec.recipe);
  task.spec.hyper.graph.clear();
  for (const fusion::Hyper& hyper : task.graph.hypers) task.spec.hyper.graph.push_back(hyper.value);
  return task;
}

// A guess, used until devices have trained: a GPU is taken for that many threads of a CPU.
DeviceFacts FusedTrainer::device_facts() const {
  constexpr int kThreadsOfGpu = 64;
  DeviceFacts facts{options_.label, fusion::device_memory(device()), kThreadsOfGpu};
  if (!device().is_cpu()) return facts;
  facts.speed = threads();
  facts.busy_slots = threads();
  facts.threads = threads();
  facts.cpus = options_.cpus;
  return facts;
}

std::optional<double> FusedTrainer::step_seconds(const std::string& partition, int slots) const {
  const auto earlier = recalled_.find(partition);
  const auto graph = graphs_.find(partition);
  const auto known = graph == graphs_.end() ? choices_.end() : choices_.find(graph->second);
  const bool recalled =
      earlier != recalled_.end() && (graph == graphs_.end() || earlier->second.key.graph == graph->second);
  if (!recalled && known == choices_.end()) return std::nullopt;
  const KeptChoices& kept = recalled ? earlier->second : known->second;
  const fusion::Measured& way = kept.choices.best_for(decided_width(kept, slots));
  const double seconds = fusion::step_seconds(way, slots);
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

PartitionPlan FusedTrainer::plan(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  PartitionPlan plan;
  plan.width = planned_width(task);
  plan.parameters = task.graph.parameter_count();
  plan.groups = groups_of(task);
  if (task.spec.model_file) {
    plan.frozen = frozen_count(task.graph, models_.read(*task.spec.model_file).parameters());
    plan.model = models_.facts(*task.spec.model_file);
    if (!task.spec.model_file->evaluation_name.empty()) {
      plan.evaluation = models_.evaluation_facts(*task.spec.model_file);
    }
  }
  const Budgeted budget = budgeted(task);
  plan.memory = budget.ways.front().need;
  plan.working = budget.ways.front().working;
  plan.budget = memory_plan(ways(task, wanted_width()), budget, room(), wanted_width());
  plan.lowerings = fusion::op_notes(trained_graph(task));
  plan.features = feature_plan(task);
  return plan;
}

bool FusedTrainer::are_runnable(const KeptChoices& kept) const {
  const std::vector<fusion::Measured>& all = kept.choices.candidates;
  return std::all_of(all.begin(), all.end(), [&](const fusion::Measured& candidate) {
    return fusion::is_runnable(candidate.lowering, device(), graphs().get());
  });
}

ChoiceKey FusedTrainer::key_of(std::string graph, int width) const {
  return {options_.device + " " + cpu_model(), TORCH_VERSION, std::move(graph), width, threads(), memory_text()};
}

int FusedTrainer::ranks() const { return options_.group == nullptr ? 1 : options_.group->ranks(); }

int FusedTrainer::stages() const { return options_.config.divide == Divide::kStages ? ranks() : 1; }

KeptChoices FusedTrainer::measured(const PreparedTask& task, const ChoiceKey& key, double expected_epochs,
                                   const fusion::MeasuredChoices* alike, const Pause& pause) {
  // The whole model, which would be timed, may be too large for one of its stages.
  if (stages() > 1) return {key, {{{budgeted(task).ways.front().lowering, 0}}, fusion::ChoiceOrigin::kNotMeasured}};
  const fusion::DeviceData& data = trained_data(task).train;
  const fusion::Recipe& recipe = task.spec.recipe;
  const fusion::Epochs epochs(recipe, epoch_options(task), data, nullptr);
  const double slot_steps = expected_epochs * static_cast<double>(epochs.steps_per_epoch());
  if (auto known = cache_.find(key, slot_steps); known && are_runnable(*known)) {
    // It may be of other ranks, or of another setting, which tried less.
    const bool ours = known->ranks && ranks() > 1 && is_choice_of(*known->ranks, ranks(), options_.config.divide);
    if (!ours) known->ranks.reset();
    return *std::move(known);
  }
  const fusion::MeasureOptions options{
      key.width, key.threads, slot_steps, 0.02, pause, graphs(), lowerings_of(budgeted(task).ways), alike};
  KeptChoices kept{key, fusion::measure(trained_graph(task), recipe, data, options, device(), clock_), slot_steps};
  if (!pause()) cache_.remember(kept);  // else it was cut short
  return kept;
}

std::vector<MeasuredWay> FusedTrainer::measure(const trials::Params& params, const Pause& pause) {
  constexpr double kPlenty = 1e12;  // slot steps that are said to follow, so that nothing is left out
  const PreparedTask task = prepare(params);
  if (stages() > 1) {
    return {{.lowering = budgeted(task).ways.front().lowering.to_text(),
             .why_not = "stages of a pipeline are not timed, as the whole model may be too large for one of them"}};
  }
  return translated(options_.label, [&] {
    const ChoiceKey key = key_of(graph_key(task), planned_width(task));
    const fusion::WayQuestion asked = question(task, key.width);
    const Budgeted budget = budgeted(task);
    const auto timed = [&](std::vector<fusion::Lowering> which) {
      const fusion::MeasureOptions options{key.width, key.threads, kPlenty, 0.02, pause, graphs(), std::move(which)};
      return fusion::measure(asked.graph, asked.recipe, trained_data(task).train, options, device(), clock_);
    };
    KeptChoices kept{key, timed(lowerings_of(budget.ways)), kPlenty};
    if (const auto known = cache_.find(key, 0)) kept.ranks = known->ranks;
    if (!pause()) cache_.remember(kept);
    std::vector<MeasuredWay> ways;
    const fusion::Measured& best = kept.choices.best_for(key.width);
    const auto add = [&](const fusion::Measured& way) {
      const double seconds = fusion::step_seconds(way, key.width) / key.width;
      ways.push_back({way.lowering.to_text(), seconds, task.spec.recipe.batch_size / seconds, &way == &best,
                      fusion::way_note(asked, way.lowering)});
    };
    for (const fusion::Measured& way : kept.choices.candidates) add(way);
    // What a leaner way would cost is shown to those who ask for it; it is not chosen.
    if (config().memory.given && !budget.spare.empty()) {
      for (const fusion::Measured& way : timed(lowerings_of(budget.spare)).candidates) add(way);
    }
    for (auto& [name, why] : fusion::ways_refused(asked)) ways.push_back({.lowering = name, .why_not = why});
    for (const auto& [way, why] : kept.choices.failed) ways.push_back({.lowering = way.to_text(), .why_not = why});
    return ways;
  });
}

int FusedTrainer::decided_width(const KeptChoices& kept, int width) const {
  return device().is_cpu() ? kept.key.width : width;
}

KeptChoices& FusedTrainer::choices_for(const PreparedTask& task, const std::string& partition, double expected_epochs,
                                       const Pause& pause) {
  const std::string graph = graph_key(task);
  graphs_.try_emplace(partition, graph);
  const auto earlier = recalled_.find(partition);
  if (earlier != recalled_.end() && earlier->second.key.graph == graph) return earlier->second;
  const auto known = choices_.find(graph);
  if (known != choices_.end()) return known->second;
  const std::string ops = ops_text(trained_graph(task));
  const auto like = alike_.find(ops);
  const fusion::MeasuredChoices* alike = like == alike_.end() ? nullptr : &like->second->choices;
  const ChoiceKey key = key_of(graph, planned_width(task));
  KeptChoices& kept = choices_.emplace(graph, measured(task, key, expected_epochs, alike, pause)).first->second;
  alike_.try_emplace(ops, &kept);
  return kept;
}

std::unique_ptr<TrainerArray> FusedTrainer::open(const trials::Params& params, int width, double expected_epochs,
                                                 const Pause& pause) {
  const PreparedTask task = prepare(params);
  const KeepTo kept_to(options_.cpus);
  try_out(task);
  return translated(options_.label, [&] {
    const KeptChoices& kept = choices_for(task, options_.config.partition(params), expected_epochs, pause);
    return std::make_unique<FusedArray>(*this, task, trained_data(task), kept, decided_width(kept, width), width);
  });
}

}  // namespace hfta::engine
