#include "engine/fused/fused_array.hpp"

#include <c10/core/Device.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/fused/translated.hpp"
#include "engine/topology/numa.hpp"

namespace hfta::engine {

namespace {

bool has_objective(const StudyConfig& config, const std::string& metric) {
  return std::any_of(config.objectives.begin(), config.objectives.end(),
                     [&](const trials::Objective& objective) { return objective.metric == metric; });
}

// The ranks that train the array together; null where ranks share slots, as each trains its own alone.
fusion::Collectives* group_of(const TrainerParts& parts, const KeptChoices& kept) {
  const bool alone = kept.ranks && kept.ranks->chosen.of == Division::Of::kSlots;
  return alone ? nullptr : parts.setup.options().group.get();
}

std::vector<int> parts_of(const KeptChoices& kept) {
  return kept.divides_batches() ? kept.ranks->chosen.parts : std::vector<int>();
}

fusion::Shares shares_of(const KeptChoices& kept) {
  return kept.stages() > 1 ? fusion::Shares::kStages : fusion::Shares::kBatches;
}

}  // namespace

FusedArray::FusedArray(TrainerParts& parts, const PreparedTask& task, const TaskData& data, const KeptChoices& kept,
                       int decided, int width)
    : parts_(parts),
      data_(data),
      kept_(kept),
      label_(parts.setup.options().label),
      cpu_(parts.setup.device().is_cpu()),
      array_(parts.facts.trained_graph(task), task.spec.recipe,
             {.lowering = kept.choices.best_for(decided).lowering,
              .width = width,
              .study_seed = parts.setup.config().seed,
              .device = parts.setup.device(),
              .graphs = parts.setup.graphs(),
              .group = group_of(parts, kept),
              .parts = parts_of(kept),
              .shares = shares_of(kept)}),
      lent_ways_(parts.memory.lent_ways(task, array_.lowering())),
      epochs_(task.spec.recipe, parts.facts.epoch_options(task), data.train,
              data.validation ? &*data.validation : nullptr),
      sets_{{task.spec.data.folds.fold, 0}},
      counts_parameters_(has_objective(parts.setup.config(), kParameterCount)) {
  for (const fusion::Measured& way : kept.choices.candidates) {
    needs_.try_emplace(way.lowering.to_text(), parts.memory.need(task, way.lowering));
  }
}

fusion::SlotInit FusedArray::init_for(int slot, int number, const trials::Params& params) {
  const PreparedTask task = parts_.prepare(params);
  parameters_[slot] = static_cast<double>(task.graph.parameter_count());
  return {task.spec.seed.value_or(static_cast<std::uint64_t>(number)), task.spec.hyper, set_of(task)};
}

int FusedArray::set_of(const PreparedTask& task) {
  const int fold = task.spec.data.folds.fold;
  const auto known = sets_.find(fold);
  if (known != sets_.end()) return known->second;
  const TaskData* data = translated(label_, [&] { return &parts_.data.trained(task); });
  const int set = epochs_.add(data->train, data->validation ? &*data->validation : nullptr);
  sets_.emplace(fold, set);
  return set;
}

void FusedArray::admit(int slot, int number, const trials::Params& params) {
  const KeepTo kept(parts_.setup.options().cpus);
  const fusion::SlotInit init = init_for(slot, number, params);
  translated(label_, [&] { array_.admit(slot, init); });
}

void FusedArray::insert(int slot, int number, const trials::Params& params, const SlotState& state) {
  const KeepTo kept(parts_.setup.options().cpus);
  const fusion::SlotInit init = init_for(slot, number, params);
  translated(label_, [&] { array_.insert(slot, init, state); });
}

SlotState FusedArray::extract(int slot) {
  return translated(label_, [&] { return array_.extract(slot); });
}

void FusedArray::clear(int slot) { array_.clear(slot); }

// On a CPU the way to run stays as it was when the array was opened, so that no trial's bits depend on how many others
// were left; on a GPU the whole width is one chunk and has to follow.
void FusedArray::resize(int width) {
  const KeepTo kept(parts_.setup.options().cpus);
  translated(label_, [&] {
    array_.resize(width);
    if (!cpu_) array_.lower(kept_.choices.best_for(width).lowering);
    if (lent_ways_ != nullptr) run_on_threads();
  });
}

void FusedArray::borrow(int lent) {
  const KeepTo kept(parts_.setup.options().cpus);
  lent_ = lent;
  translated(label_, [&] { run_on_threads(); });
}

// Runs on its own threads and those lent. Bits stay those of its own way to run, the only one that is recorded.
void FusedArray::run_on_threads() {
  const fusion::Lowering lowering = lent_ways_->with(lent_, array_.width());
  if (lowering != array_.lowering()) array_.lower(lowering);
}

std::optional<std::vector<SlotReport>> FusedArray::run_epoch(const Pause& pause) {
  const KeepTo kept(parts_.setup.options().cpus);
  return translated(label_, [&]() -> std::optional<std::vector<SlotReport>> {
    std::optional<std::vector<fusion::EpochResult>> results = epochs_.run(array_, pause);
    if (!results) return std::nullopt;
    if (kept_.stages() > 1) note_held();
    std::vector<SlotReport> reports;
    for (fusion::EpochResult& result : *results) {
      if (counts_parameters_) result.metrics[kParameterCount] = parameters_.at(result.slot);
      reports.push_back({result.slot, result.epoch, std::move(result.metrics)});
    }
    return reports;
  });
}

// Notes the mean over stages, as predictions are means, too.
void FusedArray::note_held() {
  auto bytes = static_cast<double>(array_.held_bytes());
  array_.group()->all_reduce(std::span(&bytes, 1));
  held_ = static_cast<std::int64_t>(bytes / array_.group()->ranks());
}

std::map<std::string, double> FusedArray::test(int slot) {
  if (!data_.test) return {};
  return translated(label_, [&] { return epochs_.evaluate(array_, slot, *data_.test, "test_"); });
}

ArrayInfo FusedArray::info() const {
  const fusion::Lowering& lowering = lent_ways_ != nullptr ? lent_ways_->own() : array_.lowering();
  nlohmann::ordered_json json;
  json["lowering"] = lowering.to_text();
  for (const auto& [path, name] : array_.choices()) json["ops"][path] = name;
  const double epoch_seconds = kept_.choices.seconds_per_slot_step(array_.width()) * array_.width() *
                               static_cast<double>(epochs_.steps_per_epoch());
  const int at_work = fusion::slots_at_work(lowering, array_.width(), parts_.setup.device(), kept_.stages());
  json["predicted"] = {{"bytes", needs_.at(lowering.to_text()).total(array_.width(), at_work)},
                       {"training_seconds_per_round", epoch_seconds}};
  json["held_bytes"] = held_.value_or(array_.held_bytes());
  const fusion::StepCounts steps = array_.step_counts();
  if (!steps.why_eager.empty()) json["not_captured"] = steps.why_eager;
  json["choices"] = to_json(kept_);
  return {array_.width(), lowering.chunk, lowering.workers * lowering.threads_per_worker, label_, json.dump()};
}

}  // namespace hfta::engine
