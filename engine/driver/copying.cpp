// Driver: trials that continue from a copy of another trial, as a scheduler's verdict may say.
//
// The copy is on disk before the transaction that records it, so that after a kill at any moment a run finds either the
// trial as before the copy or the state that it continues from. If that state is lost, it is trained again, each epoch
// as in the trial of its lineage that first trained it (lineage.hpp), to the same bits.

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

// All states are taken before the first is given: a source may itself continue from a copy.
std::vector<int> Driver::Impl::copy_trials(const std::vector<search::Verdict>& verdicts, OpenArray* array) {
  std::vector<std::pair<const search::Verdict*, HeldState>> copies;
  for (const search::Verdict& verdict : verdicts) {
    if (verdict.copy) copies.emplace_back(&verdict, paused_state(verdict.copy->source, array));
  }
  std::vector<int> waiting;
  for (const auto& [verdict, state] : copies) {
    copy(verdict->trial, *verdict->copy, state, array);
    if (table.entry(verdict->trial).phase == Phase::kReady) waiting.push_back(verdict->trial);
  }
  return waiting;
}

// The state of a source; null: it is lost, or behind the store.
HeldState Driver::Impl::paused_state(int draw, OpenArray* array) {
  TrialRecord& entry = table.entry(draw);
  if (entry.phase == Phase::kTraining) {
    const int slot = array != nullptr ? array->slot_of(draw) : OpenArray::kEmpty;
    return slot != OpenArray::kEmpty && entry.trained == entry.recorded ? array->extract(slot) : nullptr;
  }
  HeldState state = checkpoints.restore(entry, table.trial(draw).number);
  return entry.trained == entry.recorded ? state : nullptr;
}

void Driver::Impl::copy(int draw, const search::CopyOf& copy, const HeldState& state, OpenArray* array) {
  TrialRecord& entry = table.entry(draw);
  const TrialRecord& source = table.entry(copy.source);
  std::string partition = config.partition(copy.params);
  if (source.recorded != entry.recorded || source.partition != partition || draw == copy.source) {
    throw Error(ErrorKind::kInternal,
                fmt::format("trial {}: found a copy of trial {}, after {} epochs and of arrays '{}', wanted another "
                            "trial's, after {} epochs and of arrays '{}'",
                            table.trial(draw).number, table.trial(copy.source).number, source.recorded,
                            source.partition, entry.recorded, partition));
  }
  table.copy(draw, copy);
  table.assign(draw, std::move(partition));
  const trials::Trial& trial = table.trial(draw);
  checkpoints.copy(entry, trial.number, state, batch);
  batch.changes.copies.push_back({trial.number, trial.copies.back()});
  batch.events.emplace_back(
      TrialCopied{trial.number, entry.recorded, trial.copies.back().source, trial.copies.back().params});
  table.rest(draw, Phase::kReady, state);
  const int slot = array != nullptr ? array->slot_of(draw) : OpenArray::kEmpty;
  if (slot == OpenArray::kEmpty) return;
  array->clear(slot);
  if (array->partition() == entry.partition) array->restart(slot, draw, state, table);
}

}  // namespace hfta::engine
