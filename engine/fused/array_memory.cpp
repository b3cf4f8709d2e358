#include "engine/fused/array_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "engine/fused/memory.hpp"
#include "fusion/epochs.hpp"
#include "fusion/gpu.hpp"

namespace hfta::engine {
namespace {

// Wider arrays of small models gain nothing more on a CPU: its caches hold a chunk at a time.
constexpr int kWidestOnCpu = 32;
constexpr int kWidestOnGpu = 256;

// Where draws follow from results, few trials at a time come to good ones in fewer epochs, and a CPU trains few
// slots almost as fast as many, if every thread has some (docs/search.md, "How many side by side").
constexpr int kSlotsOfThread = 2, kFewestOnCpu = 4;

int widest_on_cpu(const StudyConfig& config, int threads) {
  if (!config.follows_results()) return kWidestOnCpu;
  return std::min(std::max(kSlotsOfThread * threads, kFewestOnCpu) * config.repetitions.count(), kWidestOnCpu);
}

}  // namespace

std::int64_t ArrayMemory::usable_bytes() const {
  const MemoryBudget& memory = setup_.config().memory;
  return memory.limit.value_or(fusion::device_memory(setup_.device()) / 2) / setup_.options().sharers;
}

// The width is at most the number of trials, as more slots are never filled.
int ArrayMemory::wanted_width() const {
  const int trials = std::max(1, setup_.config().run_cap.value_or(kWidestOnGpu));
  const int widest = setup_.device().is_cpu() ? widest_on_cpu(setup_.config(), busy_slots()) : kWidestOnGpu;
  return std::min(setup_.config().width.value_or(widest), trials);
}

int ArrayMemory::planned_width(const PreparedTask& task) {
  // A width that the config names is tried even where it may not fit, unless the config has a limit, too: check().
  return setup_.config().width ? wanted_width() : std::max(1, budgeted(task).width);
}

fusion::WayQuestion ArrayMemory::question(const PreparedTask& task, int width) {
  return {facts_.trained_graph(task),
          task.spec.recipe,
          setup_.device(),
          width,
          setup_.threads(),
          setup_.graphs().get(),
          setup_.config().memory.policy,
          evaluated_at_a_time(task),
          setup_.stages()};
}

// The batch of evaluation; a set that has fewer samples is one batch.
std::int64_t ArrayMemory::evaluated_at_a_time(const PreparedTask& task) {
  const fusion::Graph& graph = facts_.trained_graph(task);
  const fusion::Splits& splits = data_.splits(task);
  const fusion::EpochOptions options = facts_.epoch_options(task);
  const std::int64_t elements =
      fusion::elements_of(graph.values[static_cast<std::size_t>(graph.inputs.front())].shape, 1);
  const std::int64_t batch = fusion::evaluation_batch(task.spec.recipe, options, elements);
  const std::int64_t largest =
      std::max(splits.validation ? splits.validation->size : 0, splits.test ? splits.test->size : 0);
  const bool filled_up = options.fixed_batch > 0 || !options.limits.allow(std::min(batch, largest));
  return largest > 0 && filled_up ? batch : std::min(batch, largest);
}

std::int64_t ArrayMemory::data_bytes(const PreparedTask& task) {
  const fusion::Splits& splits = data_.splits(task);
  const auto bytes_of = [&](const fusion::Dataset& part) {
    return fusion::device_bytes(part, task.graph, task.spec.recipe, setup_.device());
  };
  const std::optional<FeaturePlan> features = data_.feature_plan(task);
  const std::int64_t bytes = bytes_of(splits.train) + (splits.validation ? bytes_of(*splits.validation) : 0) +
                             (splits.test ? bytes_of(*splits.test) : 0) +
                             (features ? features->kept_bytes + features->weight_bytes : 0);
  const fusion::FoldSource& folds = task.spec.data.folds;
  return fusion::has_equal_parts(folds) ? folds.count * bytes : bytes;  // an array has trials of every fold
}

std::vector<WayNeed> ArrayMemory::needs_of(const PreparedTask& task, const fusion::WayQuestion& question,
                                           std::span<const fusion::Lowering> ways) {
  const std::int64_t data = data_bytes(task);
  const std::vector<fusion::WayMemory> memory = fusion::memory_of(question, ways);
  std::vector<WayNeed> needs;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    needs.push_back(
        {ways[i], memory_need(question.graph, question.recipe, memory[i], data),
         fusion::slots_at_work(ways[i], std::numeric_limits<int>::max(), setup_.device(), question.stages)});
    std::int64_t& slot = needs.back().need.slot;  // the mean over stages, as memory has it
    slot = (slot + question.stages - 1) / question.stages;
  }
  return needs;
}

// Answers are kept: compiling the graph takes time, and every trial asks.
const std::vector<WayNeed>& ArrayMemory::ways(const PreparedTask& task, int width) {
  const fusion::WayQuestion asked = question(task, width);
  const std::string key = fmt::format("{}|{} slots|{} evaluated|{} beside", facts_.key_of(task), width,
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

Budgeted ArrayMemory::budgeted(const PreparedTask& task) {
  const int wanted = wanted_width();
  const int enough = setup_.config().width || !setup_.device().is_cpu() ? wanted : std::min(busy_slots(), wanted);
  const Budgeted found = within(ways(task, wanted), usable_bytes(), wanted, enough);
  const int width = std::max(1, found.width);
  // An array of fewer slots than wanted runs in other chunks.
  return width == wanted || setup_.config().width
             ? found
             : within(ways(task, width), usable_bytes(), width, std::min(enough, width));
}

MemoryPlan ArrayMemory::plan(const PreparedTask& task, const Budgeted& found) {
  return memory_plan(ways(task, wanted_width()), found, usable_bytes(), wanted_width());
}

MemoryNeed ArrayMemory::need(const PreparedTask& task, const fusion::Lowering& lowering) {
  for (const WayNeed& way : ways(task, planned_width(task))) {
    if (way.lowering == lowering) return way.need;
  }
  return needs_of(task, question(task, planned_width(task)), std::span(&lowering, 1)).front().need;
}

// One of several ranks gains nothing by lent threads: it waits for the others.
std::unique_ptr<LentWays> ArrayMemory::lent_ways(const PreparedTask& task, const fusion::Lowering& own) {
  if (setup_.options().group != nullptr) return nullptr;
  auto ways = std::make_unique<LentWays>(question(task, planned_width(task)), own, data_bytes(task), usable_bytes());
  return ways->any() ? std::move(ways) : nullptr;
}

int ArrayMemory::batch_that_fits(const PreparedTask& task) {
  PreparedTask smaller = task;
  while (task.graph.fixed_batch == 0 && smaller.spec.recipe.batch_size > 1) {
    smaller.spec.recipe.batch_size /= 2;
    if (within(ways(smaller, 1), usable_bytes(), 1, 1).width > 0) return smaller.spec.recipe.batch_size;
  }
  return 0;
}

// If the config has no limit, arrays are tried as they are, and become narrower if memory runs out.
void ArrayMemory::check(const PreparedTask& task, const Budgeted& found) {
  const MemoryBudget& memory = setup_.config().memory;
  if (!memory.limit) return;
  if (found.width == 0) {
    std::vector<WayNeed> recomputing;
    if (memory.policy == fusion::MemoryPolicy::kKeep) {
      fusion::WayQuestion other = question(task, 1);
      other.policy = fusion::MemoryPolicy::kRecompute;
      recomputing = needs_of(task, other, fusion::ways_to_run(other));
    }
    throw Error(ErrorKind::kConfig,
                "memory.limit: " +
                    misfit_text({ways(task, wanted_width()), recomputing, usable_bytes(), task.spec.recipe.batch_size,
                                 batch_that_fits(task), setup_.stages(), setup_.options().sharers}));
  }
  if (!setup_.config().width || found.width >= wanted_width()) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array.width: found {}, wanted auto or at most {}, which fit into memory.limit, {}",
                          wanted_width(), found.width, bytes_text(usable_bytes())));
}

}  // namespace hfta::engine
