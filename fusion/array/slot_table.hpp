#pragma once
/// Which trial is in which slot of an array, how far it is, and what executors are told of it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusion/array.hpp"
#include "fusion/array/phase.hpp"

namespace hfta::fusion {

struct Slot {
  bool occupied = false;
  SlotInit init;
  SlotProgress progress;
  std::vector<double> hypers = {};  ///< Values of Graph::hypers.
};

/// Slots that stand side by side.
struct SlotRange {
  std::size_t first = 0, count = 0;
};

/// The slots of an array, padding beyond its width among them. Calls for ranges that share no slot may come from
/// several threads at once; resize() alone.
class SlotTable {
 public:
  /// `recipe` and `phases` must outlive the table. `model_hypers`: how many of the graph's hypers are the model's; its
  /// loss's follow.
  SlotTable(const Recipe& recipe, const PhasesOfStep& phases, std::size_t model_hypers, std::uint64_t study_seed);

  /// Slots below `count` keep what they hold.
  void resize(std::size_t count);
  [[nodiscard]] Slot& at(std::size_t slot) { return slots_.at(slot); }
  [[nodiscard]] std::span<Slot> of(const SlotRange& range) {
    return std::span(slots_).subspan(range.first, range.count);
  }

  /// A slot with that trial. Throws Error{kInternal} for numbers that do not fit the recipe (check_slot()).
  [[nodiscard]] Slot occupied_by(const SlotInit& init, const SlotProgress& progress) const;

  /// What an executor is told of a range's slots for a batch in that phase. `rates`: as Array::step has them. Valid
  /// until a range with one of its slots is asked for again.
  [[nodiscard]] std::span<SlotRun> runs_of(const SlotRange& range, std::size_t phase, std::span<const double> rates,
                                           bool last_batch);
  /// Counts a batch, which the range's occupied slots have trained on, in the counters of the first phase.
  void count_batch(const SlotRange& range, const Batch& batch);
  /// Counts a step of a phase behind the first.
  void count_step(const SlotRange& range, std::size_t phase);

  /// Numbers of learning rates of a slot: of each phase's parameter groups, and of its parameters in no group.
  [[nodiscard]] std::size_t rates_per_slot() const { return groups_before(phases_.size()); }

 private:
  [[nodiscard]] std::size_t groups(std::size_t phase) const { return phases_[phase]->recipe.groups.size() + 1; }
  [[nodiscard]] std::size_t groups_before(std::size_t phase) const;
  /// Whether this batch is the last of the slot's next optimizer step.
  [[nodiscard]] bool updates(const Slot& slot, bool last_batch) const;
  /// `rates`: by group of the phase; none: 0. Writes the steps of all its groups to `own`.
  [[nodiscard]] SlotRun run_of(const Slot& slot, std::size_t phase, std::span<const double> rates, bool last_batch,
                               std::span<SlotStep> own) const;

  const Recipe& recipe_;
  const PhasesOfStep& phases_;
  std::size_t model_hypers_;
  std::uint64_t study_seed_;
  std::vector<double> default_hypers_;
  std::vector<Slot> slots_;
  std::vector<SlotRun> runs_;    ///< By slot: memory for runs_of().
  std::vector<SlotStep> steps_;  ///< [slots, groups of all phases]: memory for runs_of().
};

}  // namespace hfta::fusion
