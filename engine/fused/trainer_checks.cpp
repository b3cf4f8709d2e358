// FusedTrainer: checks before anything is trained.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/fused/inputs.hpp"
#include "engine/fused/target_check.hpp"
#include "engine/fused/task_check.hpp"
#include "fusion/gpu.hpp"
#include "fusion/modes.hpp"

namespace hfta::engine {
namespace {

// Refuses more than a few threads per core: they only wait for one another, and thousands take minutes to start.
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

// Checks the memory that slots own whatever they do: weights, gradients and optimizer state.
void check_width(const StudyConfig& config, const MemoryNeed& need, int width, std::int64_t memory) {
  if (!config.width || need.slot <= (memory - need.shared) / std::max(width, 1)) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("array.width: found {}, wanted auto or at most {}: a trial's weights, gradients and optimizer "
                  "state take {} bytes of the device's {}",
                  width, std::max<std::int64_t>(1, (memory - need.shared) / std::max<std::int64_t>(need.slot, 1)),
                  need.slot, memory));
}

// Checks that ranks can share the task's arrays as array.divide says.
void check_divided(TrainerParts& parts, const PreparedTask& task) {
  const Divide divide = parts.setup.config().divide;
  if (parts.setup.ranks() == 1 || divide == Divide::kAuto || divide == Divide::kSlots) return;
  const bool staged = divide == Divide::kStages;
  const std::string why =
      staged ? parts.facts.why_not_staged(task)
             : parts.facts.why_not_divided(task, std::vector<int>(static_cast<std::size_t>(parts.setup.ranks()), 1));
  if (why.empty()) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("array.divide: found {}, wanted auto or slots, as the parts of {} cannot {} of this model: {}",
                  name_of(divide), parts.setup.options().label, staged ? "be the stages" : "divide the batches", why));
}

// Checks that the graph says what validation and test compute. Trials without validation or test data need no check.
void check_evaluation(const PreparedTask& task) {
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

// Checks that the model's ops can run, and notes which samples a fixed batch leaves out.
void check_model(TrainerParts& parts, const PreparedTask& task, const fusion::Splits& splits) {
  parts.facts.try_out(task);
  const auto check_mixed = [&](const std::optional<fusion::Dataset>& data, const char* part) {
    if (data) check_whole_batches(task.spec, task.graph, *data, part, true);
  };
  if (parts.facts.mixes_samples(task)) {
    check_mixed(splits.validation, "validation");
    check_mixed(splits.test, "test");
  }
  if (const std::string pairs = told_by_order(task.spec, task.graph); !pairs.empty()) {
    parts.models.note(*task.spec.model_file, "arrays go to the inputs in their order: " + pairs);
  }
  if (task.graph.fixed_batch == 0) return;
  const std::int64_t left = splits.train.size % task.graph.fixed_batch;
  if (left == 0) return;
  parts.models.note(
      *task.spec.model_file,
      fmt::format("exported at batch size {}: the last {} of {} training samples of an epoch's order are left "
                  "out",
                  task.graph.fixed_batch, left, splits.train.size));
}

}  // namespace

void FusedTrainer::check(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  const StudyConfig& config = parts_.setup.config();
  const fusion::Splits& splits = parts_.data.splits(task);
  check_task(task.spec, task.graph, splits);
  check_threads(config, parts_.setup.cores());
  check_divided(parts_, task);
  const Budgeted budget = parts_.memory.budgeted(task);
  parts_.memory.check(task, budget);
  check_width(config, budget.ways.front().need, parts_.memory.wanted_width(),
              fusion::device_memory(parts_.setup.device()));
  choices_.note_graph(config.partition(params), parts_.facts.key_of(task));
  if (task.spec.model_file) {
    if (splits.validation || splits.test) check_evaluation(task);
    check_model(parts_, task, splits);
  }
}

}  // namespace hfta::engine
