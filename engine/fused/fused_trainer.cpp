#include "engine/fused/fused_trainer.hpp"

#include <c10/core/Device.h>
#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/fused/fused_array.hpp"
#include "engine/fused/task_check.hpp"
#include "engine/fused/translated.hpp"

namespace hfta::engine {
namespace {

// Wider arrays of small models on a CPU gain nothing more: chunks are what the caches see.
constexpr int kWidestOnCpu = 32;
constexpr int kWidestOnGpu = 256;

std::string text_of(const fusion::DataSource& source) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", source.name, source.train.string(),
                     source.validation_file.string(), source.test_file.string(), source.validation.value_or(-1),
                     source.test.value_or(-1), join(source.x), source.y, source.target, join(source.features));
}

// Activations and gradients of one sample, counting every value of the graph once forward and once backward.
std::int64_t activation_bytes(const fusion::Graph& graph, const fusion::Recipe& recipe) {
  const std::int64_t element = recipe.dtype == fusion::DType::kFloat64 ? 8 : 4;
  std::int64_t bytes = 0;
  for (const fusion::Node& node : graph.nodes) {
    for (const fusion::ValueId id : node.outputs) {
      std::int64_t elements = 1;
      for (const std::int64_t extent : graph.values[static_cast<std::size_t>(id)].shape) {
        elements *= extent == fusion::kBatch ? recipe.batch_size : extent;
      }
      bytes += 2 * element * elements;
    }
  }
  return bytes;
}

// Weights, gradients and optimizer state.
std::int64_t weight_bytes(const fusion::Graph& graph, const fusion::Recipe& recipe) {
  const std::int64_t element = recipe.dtype == fusion::DType::kFloat64 ? 8 : 4;
  const int copies = recipe.optimizer == fusion::OptimizerKind::kSgd ? 3 : 4;
  return copies * element * graph.parameter_count();
}

std::int64_t host_memory() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace

FusedTrainer::FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock)
    : options_(options), files_(files), clock_(clock), cache_(files, options.cache) {}

int FusedTrainer::threads() const {
  return options_.config.threads.value_or(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

const LoadedData& FusedTrainer::data_for(const TaskSpec& spec) {
  const bool classes = spec.recipe.loss == fusion::Loss::kCrossEntropy;
  const std::string key =
      fmt::format("{}|{}|{}", text_of(spec.data), name_of(spec.recipe.dtype), classes ? "classes" : "numbers");
  const auto known = data_.find(key);
  if (known != data_.end()) return known->second;
  LoadedData data;
  data.host = fusion::load_data(spec.data, classes, options_.config.seed, options_.data_root);
  const c10::Device device(options_.device);
  data.train = fusion::to_device(data.host.train, spec.recipe, device);
  if (data.host.validation) data.validation = fusion::to_device(*data.host.validation, spec.recipe, device);
  if (data.host.test) data.test = fusion::to_device(*data.host.test, spec.recipe, device);
  return data_.emplace(key, std::move(data)).first->second;
}

PreparedTask FusedTrainer::prepare(const trials::Params& params) {
  PreparedTask task{options_.config.task(params), {}};
  const fusion::Splits& splits = data_for(task.spec).host;
  fusion::Shape input = {fusion::kBatch};
  const fusion::Field& first = splits.train.inputs.front();
  input.insert(input.end(), first.shape.begin(), first.shape.end());
  task.graph = fusion::build_graph(task.spec.layers, input, task.spec.recipe.dtype);
  task.spec.hyper.graph.clear();
  for (const fusion::Hyper& hyper : task.graph.hypers) task.spec.hyper.graph.push_back(hyper.value);
  return task;
}

void FusedTrainer::check(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  check_task(task.spec, task.graph, data_for(task.spec).host);
}

std::string FusedTrainer::partition(const trials::Params& params) const { return options_.config.partition(params); }

int FusedTrainer::planned_width(const PreparedTask& task) const {
  const int trials = options_.config.run_cap.value_or(kWidestOnGpu);  // more slots than trials are never filled
  if (options_.config.width) return std::min(*options_.config.width, std::max(1, trials));
  const bool cpu = options_.device == "cpu";
  const std::int64_t activations = activation_bytes(task.graph, task.spec.recipe);
  // On a CPU only the slots at work hold activations.
  const std::int64_t fixed = cpu ? threads() * activations : 0;
  const std::int64_t per_slot =
      std::max<std::int64_t>(1, weight_bytes(task.graph, task.spec.recipe) + (cpu ? 0 : activations));
  const std::int64_t room = host_memory() / 2 - fixed;
  const int widest = std::clamp(trials, 1, cpu ? kWidestOnCpu : kWidestOnGpu);
  return static_cast<int>(std::clamp<std::int64_t>(room / per_slot, 1, widest));
}

PartitionPlan FusedTrainer::plan(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  PartitionPlan plan;
  plan.width = planned_width(task);
  plan.parameters = task.graph.parameter_count();
  plan.bytes_per_slot = weight_bytes(task.graph, task.spec.recipe) + activation_bytes(task.graph, task.spec.recipe);
  return plan;
}

const fusion::MeasuredChoices& FusedTrainer::choices_for(const PreparedTask& task, double expected_epochs) {
  const LoadedData& data = data_for(task.spec);
  const fusion::Recipe& recipe = task.spec.recipe;
  const std::string graph = fmt::format("{}|{}|{}|batch {}|{}", name_of(recipe.dtype), name_of(recipe.optimizer),
                                        name_of(recipe.loss), recipe.batch_size, task.graph.signature());
  const auto known = choices_.find(graph);
  if (known != choices_.end()) return known->second;
  const int width = planned_width(task);
  const ChoiceKey key{options_.device + " " + cpu_model(), TORCH_VERSION, graph, width, threads()};
  std::optional<fusion::MeasuredChoices> choices = cache_.find(key);
  if (!choices) {
    const fusion::Epochs epochs(recipe, {task.spec.order, task.spec.drop_last, 0}, data.train, nullptr);
    const fusion::MeasureOptions options{width, threads(),
                                         expected_epochs * static_cast<double>(epochs.steps_per_epoch()), 0.02};
    choices = fusion::measure(task.graph, recipe, data.train, options, c10::Device(options_.device), clock_);
    cache_.remember(key, *choices);
  }
  return choices_.emplace(graph, std::move(*choices)).first->second;
}

std::unique_ptr<TrainerArray> FusedTrainer::open(const trials::Params& params, int width, double expected_epochs) {
  const PreparedTask task = prepare(params);
  return translated(options_.device, [&] {
    const fusion::MeasuredChoices& choices = choices_for(task, expected_epochs);
    const int decided = options_.device == "cpu" ? planned_width(task) : width;
    return std::make_unique<FusedArray>(*this, task, data_for(task.spec), choices, choices.best_for(decided).lowering,
                                        width, options_.device);
  });
}

}  // namespace hfta::engine
