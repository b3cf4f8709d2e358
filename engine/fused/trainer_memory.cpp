// FusedTrainer: what arrays need of memory, and which ways to run fit into its budget.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "engine/fused/budget.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/fused/memory.hpp"
#include "fusion/gpu.hpp"

namespace hfta::engine {
namespace {

// Wider arrays of small models on a CPU gain nothing more: chunks are what the caches see.
constexpr int kWidestOnCpu = 32;
constexpr int kWidestOnGpu = 256;

// Where trials follow from one another's results, few at a time come to good ones in fewer epochs, and a CPU trains few
// slots almost as fast as many, if every thread has some (docs/search.md, "How many side by side").
constexpr int kSlotsOfThread = 2, kFewestOnCpu = 4;

int widest_on_cpu(const StudyConfig& config, int threads) {
  if (!config.follows_results()) return kWidestOnCpu;
  return std::min(std::max(kSlotsOfThread * threads, kFewestOnCpu) * config.repetitions.count(), kWidestOnCpu);
}

}  // namespace

std::int64_t FusedTrainer::room() const {
  const MemoryBudget& memory = options_.config.memory;
  return memory.limit.value_or(fusion::device_memory(device()) / 2) / options_.sharers;
}

std::string FusedTrainer::memory_text() const {
  const MemoryBudget& memory = options_.config.memory;
  if (memory.limit) return fmt::format("{} within {} bytes", name_of(memory.policy), *memory.limit / options_.sharers);
  return memory.policy == fusion::MemoryPolicy::kAuto ? "" : name_of(memory.policy);
}

// More slots than trials are never filled.
int FusedTrainer::wanted_width() const {
  const int trials = std::max(1, options_.config.run_cap.value_or(kWidestOnGpu));
  const int widest = device().is_cpu() ? widest_on_cpu(options_.config, busy_slots()) : kWidestOnGpu;
  return std::min(options_.config.width.value_or(widest), trials);
}

int FusedTrainer::planned_width(const PreparedTask& task) {
  // A width that the config names is tried even where it may not fit, unless the config has a limit, too: check().
  return options_.config.width ? wanted_width() : std::max(1, budgeted(task).width);
}

fusion::EpochOptions FusedTrainer::epoch_options(const PreparedTask& task) {
  return {task.spec.order,          task.spec.drop_last, options_.config.seed, task.graph.fixed_batch,
          task.graph.largest_batch, task.graph.limits,   may_mix_samples(task)};
}

fusion::WayQuestion FusedTrainer::question(const PreparedTask& task, int width) {
  return {trained_graph(task),           task.spec.recipe,          device(), width, threads(), graphs().get(),
          options_.config.memory.policy, evaluated_at_a_time(task), stages()};
}

// A set that has fewer samples is one batch.
std::int64_t FusedTrainer::evaluated_at_a_time(const PreparedTask& task) {
  const fusion::Graph& graph = trained_graph(task);
  const fusion::Splits& splits = load(task.spec, task.input_types).host;
  const fusion::EpochOptions options = epoch_options(task);
  const std::int64_t elements =
      fusion::elements_of(graph.values[static_cast<std::size_t>(graph.inputs.front())].shape, 1);
  const std::int64_t batch = fusion::evaluation_batch(task.spec.recipe, options, elements);
  const std::int64_t largest =
      std::max(splits.validation ? splits.validation->size : 0, splits.test ? splits.test->size : 0);
  const bool filled_up = options.fixed_batch > 0 || !options.limits.allow(std::min(batch, largest));
  return largest > 0 && filled_up ? batch : std::min(batch, largest);
}

std::int64_t FusedTrainer::data_bytes(const PreparedTask& task) {
  const fusion::Splits& splits = load(task.spec, task.input_types).host;
  const auto bytes_of = [&](const fusion::Dataset& part) {
    return fusion::device_bytes(part, task.graph, task.spec.recipe, device());
  };
  const std::optional<FeaturePlan> features = feature_plan(task);
  const std::int64_t bytes = bytes_of(splits.train) + (splits.validation ? bytes_of(*splits.validation) : 0) +
                             (splits.test ? bytes_of(*splits.test) : 0) +
                             (features ? features->kept_bytes + features->weight_bytes : 0);
  const fusion::FoldSource& folds = task.spec.data.folds;
  return fusion::has_equal_parts(folds) ? folds.count * bytes : bytes;  // an array has trials of every fold
}

std::vector<WayNeed> FusedTrainer::needs_of(const PreparedTask& task, const fusion::WayQuestion& question,
                                            std::span<const fusion::Lowering> ways) {
  const std::int64_t data = data_bytes(task);
  const std::vector<fusion::WayMemory> memory = fusion::memory_of(question, ways);
  std::vector<WayNeed> needs;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    needs.push_back({ways[i], engine::memory_need(question.graph, question.recipe, memory[i], data),
                     fusion::slots_at_work(ways[i], std::numeric_limits<int>::max(), device(), question.stages)});
    std::int64_t& slot = needs.back().need.slot;  // the mean over stages, as memory has it
    slot = (slot + question.stages - 1) / question.stages;
  }
  return needs;
}

// Compiling the graph takes time, and this is asked for every trial.
const std::vector<WayNeed>& FusedTrainer::ways(const PreparedTask& task, int width) {
  const fusion::WayQuestion asked = question(task, width);
  const std::string key = fmt::format("{}|{} slots|{} evaluated|{} beside", graph_key(task), width,
                                      asked.evaluation_batch, data_bytes(task));
  const auto known = ways_.find(key);
  if (known != ways_.end()) return known->second;
  const std::vector<fusion::Lowering> lowerings = fusion::ways_to_run(asked);
  if (lowerings.empty()) {
    std::string text = fmt::format("memory.policy: found {}, wanted auto or keep", name_of(asked.policy));
    for (const auto& [executor, why] : fusion::ways_refused(asked)) text += fmt::format("; {}: {}", executor, why);
    throw Error(ErrorKind::kConfig, text);
  }
  return ways_.emplace(key, needs_of(task, asked, lowerings)).first->second;
}

Budgeted FusedTrainer::budgeted(const PreparedTask& task) {
  const int wanted = wanted_width();
  const int enough = options_.config.width || !device().is_cpu() ? wanted : std::min(busy_slots(), wanted);
  const Budgeted found = within(ways(task, wanted), room(), wanted, enough);
  const int width = std::max(1, found.width);
  // Fewer slots than were wanted run in other chunks.
  return width == wanted || options_.config.width ? found
                                                  : within(ways(task, width), room(), width, std::min(enough, width));
}

MemoryNeed FusedTrainer::memory_need(const PreparedTask& task, const fusion::Lowering& lowering) {
  for (const WayNeed& way : ways(task, planned_width(task))) {
    if (way.lowering == lowering) return way.need;
  }
  return needs_of(task, question(task, planned_width(task)), std::span(&lowering, 1)).front().need;
}

// One of several ranks gains nothing by threads of its own: it waits for the others.
std::unique_ptr<LentWays> FusedTrainer::lent_ways(const PreparedTask& task, const fusion::Lowering& own) {
  if (options_.group != nullptr) return nullptr;
  auto ways = std::make_unique<LentWays>(question(task, planned_width(task)), own, data_bytes(task), room());
  return ways->any() ? std::move(ways) : nullptr;
}

int FusedTrainer::batch_that_fits(const PreparedTask& task) {
  PreparedTask smaller = task;
  while (task.graph.fixed_batch == 0 && smaller.spec.recipe.batch_size > 1) {
    smaller.spec.recipe.batch_size /= 2;
    if (within(ways(smaller, 1), room(), 1, 1).width > 0) return smaller.spec.recipe.batch_size;
  }
  return 0;
}

// Where the config has no limit, arrays are tried as they are, and become narrower if memory runs out.
void FusedTrainer::check_budget(const PreparedTask& task, const Budgeted& found) {
  const MemoryBudget& memory = options_.config.memory;
  if (!memory.limit) return;
  if (found.width == 0) {
    std::vector<WayNeed> recomputing;
    if (memory.policy == fusion::MemoryPolicy::kKeep) {
      fusion::WayQuestion other = question(task, 1);
      other.policy = fusion::MemoryPolicy::kRecompute;
      recomputing = needs_of(task, other, fusion::ways_to_run(other));
    }
    throw Error(ErrorKind::kConfig,
                "memory.limit: " + misfit_text({ways(task, wanted_width()), recomputing, room(),
                                                task.spec.recipe.batch_size, batch_that_fits(task), stages()}));
  }
  if (!options_.config.width || found.width >= wanted_width()) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array.width: found {}, wanted auto or at most {}, which fit into memory.limit, {}",
                          wanted_width(), found.width, bytes_text(room())));
}

}  // namespace hfta::engine
