// What FusedTrainer refuses before anything is trained.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/fused/inputs.hpp"
#include "engine/fused/target_check.hpp"
#include "engine/fused/task_check.hpp"
#include "engine/fused/translated.hpp"
#include "fusion/divided_batches.hpp"
#include "fusion/modes.hpp"
#include "fusion/runnable.hpp"
#include "fusion/staged.hpp"

namespace hfta::engine {
namespace {

// More threads than a few per core only wait for one another; thousands take minutes to start.
void check_threads(const StudyConfig& config, int cores) {
  constexpr int kMostPerCore = 8;
  const int most = kMostPerCore * cores;
  if (config.threads && *config.threads > most) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("array.threads: found {}, wanted auto or at most {}, {} for each of this machine's {} cores",
                    *config.threads, most, kMostPerCore, cores));
  }
  int named = 0;
  for (const std::string& device : config.devices) {
    for (const std::string& part : parts_of(device)) named += cpu_threads(part).value_or(0);
  }
  if (named <= most) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("array.device: found {} threads, wanted at most {}, {} for each of this machine's {} cores",
                          named, most, kMostPerCore, cores));
}

// What slots own whatever they do: weights, gradients and optimizer state.
void check_width(const StudyConfig& config, const MemoryNeed& need, int width, std::int64_t memory) {
  if (!config.width || need.slot <= (memory - need.shared) / std::max(width, 1)) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("array.width: found {}, wanted auto or at most {}: a trial's weights, gradients and optimizer "
                  "state take {} bytes of the device's {}",
                  width, std::max<std::int64_t>(1, (memory - need.shared) / std::max<std::int64_t>(need.slot, 1)),
                  need.slot, memory));
}

}  // namespace

void FusedTrainer::check(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  const fusion::Splits& splits = load(task.spec, task.input_types).host;
  check_task(task.spec, task.graph, splits);
  check_threads(options_.config, cores_);
  check_divided(task);
  const Budgeted budget = budgeted(task);
  check_budget(task, budget);
  check_width(options_.config, budget.ways.front().need, wanted_width(), fusion::device_memory(device()));
  graphs_.try_emplace(options_.config.partition(params), graph_key(task));
  if (task.spec.model_file) {
    if (splits.validation || splits.test) check_evaluation(task);
    check_model(task, splits);
  }
}

void FusedTrainer::check_divided(const PreparedTask& task) {
  const Divide divide = options_.config.divide;
  if (ranks() == 1 || divide == Divide::kAuto || divide == Divide::kSlots) return;
  const bool staged = divide == Divide::kStages;
  const std::string why =
      staged ? why_not_staged(task) : why_not_divided(task, std::vector<int>(static_cast<std::size_t>(ranks()), 1));
  if (why.empty()) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("array.divide: found {}, wanted auto or slots, as the parts of {} cannot {} of this model: {}",
                  name_of(divide), options_.label, staged ? "be the stages" : "divide the batches", why));
}

// Compiling stages takes time, and this is asked for every trial.
const std::string& FusedTrainer::why_not_staged(const PreparedTask& task) {
  const std::string key = graph_key(task);
  const auto known = not_staged_.find(key);
  if (known != not_staged_.end()) return known->second;
  return not_staged_.emplace(key, fusion::why_not_staged(trained_graph(task), task.spec.recipe, ranks())).first->second;
}

// Trials that are only trained have nothing to doubt.
void FusedTrainer::check_evaluation(const PreparedTask& task) const {
  const ModelFile& model = *task.spec.model_file;
  const std::string place = model.import.where + ".evaluation: ";
  if (model.evaluation_by_training) {
    const std::string drawn = fusion::drawn_in_evaluation(task.graph);
    if (drawn.empty()) return;
    throw Error(ErrorKind::kConfig, place + "found training_graph, wanted the file of model.eval(): " + drawn);
  }
  const std::string doubt = fusion::doubt_of_evaluation(task.graph);
  if (doubt.empty()) return;
  if (task.graph.evaluation != nullptr) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}{}: found a graph that {}; wanted an export of model.eval() whose forward does not",
                            place, printable(model.evaluation_name), doubt));
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("{}found nothing, wanted the file of model.eval() (examples/pytorch/export_both.py): the "
                          "training graph does not say what evaluation computes: {}. If evaluation is this graph with "
                          "dropout off and random tensors at their mean: evaluation: training_graph",
                          place, doubt));
}

// Once for all trials with that graph. Layers of a config need no trial.
void FusedTrainer::try_out(const PreparedTask& task) {
  const std::string graph = task.graph.signature();
  if (!task.spec.model_file || runnable_.contains(graph)) return;
  const fusion::Dataset& data = load(task.spec, task.input_types).host.train;
  runnable_[graph] = translated(options_.label, [&] {
    return fusion::check_runnable(task.graph, task.spec.recipe, task.spec.hyper, data, device());
  });
}

bool FusedTrainer::mixes_samples(const PreparedTask& task) const {
  const auto known = runnable_.find(task.graph.signature());
  return known != runnable_.end() && known->second.mixes_samples;
}

bool FusedTrainer::may_mix_samples(const PreparedTask& task) {
  if (!task.spec.model_file) return false;
  const std::string graph = task.graph.signature();
  const auto known = evaluated_apart_.find(graph);
  if (known != evaluated_apart_.end()) return !known->second;
  return !evaluated_apart_.emplace(graph, fusion::evaluates_samples_apart(task.graph)).first->second;
}

void FusedTrainer::check_model(const PreparedTask& task, const fusion::Splits& splits) {
  try_out(task);
  const auto check_mixed = [&](const std::optional<fusion::Dataset>& data, const char* part) {
    if (data) check_whole_batches(task.spec, task.graph, *data, part, true);
  };
  if (mixes_samples(task)) {
    check_mixed(splits.validation, "validation");
    check_mixed(splits.test, "test");
  }
  if (const std::string pairs = told_by_order(task.spec, task.graph); !pairs.empty()) {
    models_.note(*task.spec.model_file, "arrays go to the inputs in their order: " + pairs);
  }
  if (task.graph.fixed_batch == 0) return;
  const std::int64_t left = splits.train.size % task.graph.fixed_batch;
  if (left == 0) return;
  models_.note(*task.spec.model_file,
               fmt::format("exported at batch size {}: the last {} of {} training samples of an epoch's order are left "
                           "out",
                           task.graph.fixed_batch, left, splits.train.size));
}

}  // namespace hfta::engine
