#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using fusion::Precision;
using fusion::ScheduleKind;

// The value whose name_of() is that word. REQUIRES that there is one, as the table of keys checks.
template <typename Enum>
Enum named(const std::string& word, std::initializer_list<Enum> all) {
  return *std::find_if(all.begin(), all.end(), [&](Enum value) { return word == fusion::name_of(value); });
}

// Records the value only if it is not the default, so that studies from before there was the key compare as equal.
void read_precision(Reader& train, fusion::Recipe& recipe) {
  const Node* node = train.find("precision");
  if (node == nullptr) return;
  const std::string word = train.site("precision").word(*node);
  recipe.precision = named(word, {Precision::kFloat32, Precision::kTf32, Precision::kBfloat16});
  if (recipe.precision == Precision::kFloat32) return;
  if (recipe.dtype == fusion::DType::kFloat64) {
    train.fail("precision", fmt::format("found {} with dtype float64, wanted float32", word));
  }
  train.record("precision", word);
}

// Records nothing if the key is absent, as above.
void read_accumulation(Reader& train, TaskSpec& task) {
  task.recipe.accumulates = train.has("accumulate");
  if (task.recipe.accumulates) task.hyper.accumulate = train.integer("accumulate");
}

// Reads a loss and an optimizer for all parameters.
void read_single_phase(Reader& train, const trials::Space& space, TaskSpec& task) {
  read_loss(train, space, task);
  Reader section = train.section("optimizer");
  OptimizerRead optimizer = read_optimizer(section, space);
  task.recipe.optimizer = optimizer.kind;
  task.recipe.groups = std::move(optimizer.groups);
  task.hyper.optimizer = optimizer.hyper;
  task.hyper.groups = std::move(optimizer.group_hypers);
  task.recipe.clips = train.has("clip_norm");
  task.hyper.clip_norm = train.optional_number("clip_norm");
  read_accumulation(train, task);
}

}  // namespace

void read_schedule(Reader& section, const trials::Space& space, TaskSpec& task) {
  const std::string name = section.word("name");
  section.restrict_to(name, possible_words(section.find("name"), space));
  fusion::Schedule& schedule = task.hyper.schedule;
  schedule.kind =
      named(name, {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine, ScheduleKind::kLinear});
  schedule.per_step = section.word("per") == "step";
  schedule.warmup = section.number("warmup");
  schedule.start_factor = section.number("start_factor");
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      break;
    case ScheduleKind::kStep:
      schedule.step_size = section.number("step_size");
      schedule.gamma = section.number("gamma");
      break;
    case ScheduleKind::kCosine:
      schedule.t_max = section.optional_number("T_max").value_or(0);
      schedule.eta_min = section.number("eta_min");
      break;
    case ScheduleKind::kLinear:
      schedule.end_factor = section.number("end_factor");
      schedule.total_iters = section.number("total_iters");
      break;
  }
}

// Checks a warm-up by itself. Steps are counted once the data are known; see engine/fused/task_check.hpp.
void check_warmup(const Reader& section, const TaskSpec& task) {
  const fusion::Schedule& schedule = task.hyper.schedule;
  if (schedule.per_step || schedule.warmup == 0 || schedule.warmup < task.recipe.epochs) return;
  section.fail("warmup",
               fmt::format("found {} epochs, wanted fewer than the {} of training, or the schedule never begins",
                           shortest(schedule.warmup), task.recipe.epochs));
}

void read_train(Reader& train, const TaskText& text, TaskSpec& task) {
  if (train.has("phases")) {
    read_phases(train, text.space, task);
  } else {
    read_single_phase(train, text.space, task);
  }
  check_padding(train, task);
  Reader schedule = train.section("schedule");
  read_schedule(schedule, text.space, task);
  const Node* schedule_node = train.find("schedule");
  if (schedule_node != nullptr) task.schedule_where = place_of(text.file, *schedule_node);
  if (train.has("epochs") || text.default_epochs == 0) {
    if (!train.has("epochs")) train.fail("epochs", "found nothing, wanted " + wanted_text(train.site("epochs").key));
    task.recipe.epochs = static_cast<int>(train.integer("epochs"));
  } else {
    task.recipe.epochs = text.default_epochs;
    train.record("epochs", text.default_epochs);
  }
  check_warmup(schedule, task);
  task.recipe.dtype = train.word("dtype") == "float64" ? fusion::DType::kFloat64 : fusion::DType::kFloat32;
  if (task.model_file) task.model_file->import.dtype = task.recipe.dtype;
  read_precision(train, task.recipe);
  if (const auto seed = train.optional_integer("seed")) task.seed = static_cast<std::uint64_t>(*seed);
  read_metrics(train, task);
  for (std::size_t p = 1; p < task.recipe.phases.size(); ++p) {  // behind what metrics read
    const fusion::Phase& phase = task.recipe.phases[p];
    task.model_file->import.further.push_back(phase.loss);
    if (phase.weighted) task.model_file->import.further.push_back(phase.weight);
  }
}

}  // namespace hfta::engine::configuration
