#include "fusion/array/slot_table.hpp"

#include <algorithm>

#include "fusion/array/checks.hpp"
#include "fusion/random/draws.hpp"

namespace hfta::fusion {
namespace {

const SlotHyper nobody;

}  // namespace

SlotTable::SlotTable(const Recipe& recipe, const PhasesOfStep& phases, std::size_t model_hypers,
                     std::uint64_t study_seed)
    : recipe_(recipe), phases_(phases), model_hypers_(model_hypers), study_seed_(study_seed) {
  for (const Hyper& hyper : phases.front()->graph.hypers) default_hypers_.push_back(hyper.value);
}

void SlotTable::resize(std::size_t count) {
  slots_.resize(count);
  runs_.resize(count);
  steps_.resize(count * rates_per_slot());
}

Slot SlotTable::occupied_by(const SlotInit& init, const SlotProgress& progress) const {
  check_slot(init, recipe_, model_hypers_, default_hypers_.size() - model_hypers_);
  Slot slot{true, init, progress, default_hypers_};
  const SlotHyper& given = init.hyper;
  std::copy(given.graph.begin(), given.graph.end(), slot.hypers.begin());
  std::copy(given.loss.begin(), given.loss.end(), slot.hypers.begin() + static_cast<std::ptrdiff_t>(model_hypers_));
  SlotHyper& hyper = slot.init.hyper;
  if (hyper.phases.empty()) hyper.groups.resize(recipe_.groups.size(), hyper.optimizer);
  for (std::size_t p = 0; p < hyper.phases.size(); ++p) {
    hyper.phases[p].groups.resize(recipe_.phases[p].groups.size(), hyper.phases[p].optimizer);
  }
  slot.progress.later.resize(phases_.size() - 1);
  return slot;
}

std::span<SlotRun> SlotTable::runs_of(const SlotRange& range, std::size_t phase, std::span<const double> rates,
                                      bool last_batch) {
  const std::span<SlotRun> runs = std::span(runs_).subspan(range.first, range.count);
  const std::size_t all = rates_per_slot(), before = groups_before(phase), own = groups(phase);
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t slot = range.first + i;
    runs[i] = run_of(slots_[slot], phase, rates.empty() ? rates : rates.subspan(i * all + before, own), last_batch,
                     std::span(steps_).subspan(slot * all + before, own));
  }
  return runs;
}

void SlotTable::count_batch(const SlotRange& range, const Batch& batch) {
  for (Slot& slot : of(range)) {
    if (!slot.occupied) continue;
    const bool stepped = has_turn(recipe_, 0, batch.place) && updates(slot, batch.last);
    slot.progress.step += stepped ? 1 : 0;
    slot.progress.batches += 1;
    slot.progress.accumulated = stepped || !recipe_.accumulates ? 0 : slot.progress.accumulated + 1;
  }
}

void SlotTable::count_step(const SlotRange& range, std::size_t phase) {
  for (Slot& slot : of(range)) {
    if (slot.occupied) slot.progress.later[phase - 1].step += 1;
  }
}

std::size_t SlotTable::groups_before(std::size_t phase) const {
  std::size_t count = 0;
  for (std::size_t p = 0; p < phase; ++p) count += groups(p);
  return count;
}

bool SlotTable::updates(const Slot& slot, bool last_batch) const {
  if (!slot.occupied) return false;
  return !recipe_.accumulates || last_batch || slot.progress.accumulated + 1 >= slot.init.hyper.accumulate;
}

SlotRun SlotTable::run_of(const Slot& slot, std::size_t phase, std::span<const double> rates, bool last_batch,
                          std::span<SlotStep> own) const {
  const PhaseNumbers numbers = numbers_of_phase(slot.occupied ? slot.init.hyper : nobody, slot.occupied ? phase : 0);
  const std::int64_t taken = phase == 0 || !slot.occupied ? slot.progress.step : slot.progress.later[phase - 1].step;
  for (std::size_t g = 0; g < own.size(); ++g) {
    const bool grouped = slot.occupied && g > 0;
    own[g].updates = updates(slot, last_batch);
    own[g].hyper = grouped ? numbers.groups[g - 1] : numbers.optimizer;
    own[g].hyper.lr = slot.occupied && !rates.empty() ? rates[g] : 0;
    own[g].step = taken + 1;
    own[g].clip_norm = numbers.clip_norm;
    own[g].clip_weights = numbers.clip_weights;
  }
  SlotRun run;
  run.occupied = slot.occupied;
  run.steps = own;
  run.random = {slot.occupied ? dropout_key(study_seed_, slot.init.seed) : 0,
                static_cast<std::uint64_t>(slot.progress.batches)};
  run.hypers = slot.occupied ? slot.hypers : default_hypers_;
  return run;
}

}  // namespace hfta::fusion
