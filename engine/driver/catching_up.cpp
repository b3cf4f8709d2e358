// Driver: resumes a study of a method that learns.
//
// A draw sees the epochs that every trial had when a slot became empty. After a kill, the states of trials may be
// behind the store, each by another number of epochs. If all trials simply resumed side by side, later draws would see
// more epochs of one trial and fewer of another than in an undisturbed run. So the trials that are behind are first
// trained, alone, up to the epochs that the store has of them. The store has these rounds already, so they are neither
// counted nor recorded. Afterwards every trial is where the last round left it.

#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

// Starts catching up. False: no trial is behind.
bool Driver::Impl::begin_catching_up() {
  for (int draw = 0; draw < table.drawn(); ++draw) {
    TrialRecord& entry = table.entry(draw);
    const bool waits = entry.phase == Phase::kPaused ||
                       (entry.phase == Phase::kReady && entry.decision == search::Decision::kContinue);
    if (!waits || entry.recorded == 0) continue;
    const Laggard stood{entry.phase, entry.decision};
    table.rest(draw, entry.phase, checkpoints.restore(entry, table.trial(draw).number));
    if (entry.trained < entry.recorded) {
      table.rest(draw, Phase::kReady, entry.state);
      laggards.emplace(draw, stood);
      queue.push(draw);
    }
    spill();
  }
  catches_up = !laggards.empty();
  return catches_up;
}

void Driver::Impl::end_catching_up() {
  catches_up = false;
  if (!halted()) reopen_arrays();
}

// Takes a trial that has caught up out of its slot; false: the trial is none that had to.
bool Driver::Impl::catch_up(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  const auto found = laggards.find(draw);
  if (found == laggards.end()) return false;
  TrialRecord& entry = table.entry(draw);
  if (entry.trained < entry.recorded) return true;
  entry.decision = found->second.decision;
  table.rest(draw, found->second.phase, array.extract(slot));
  array.clear(slot);
  laggards.erase(found);
  return true;
}

}  // namespace hfta::engine
