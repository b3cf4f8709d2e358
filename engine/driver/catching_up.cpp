// Driver: a study of a method that learns goes on from where it stood.
//
// What a draw knows is how far every trial was when a slot fell empty. After a kill, states may be behind the store, by
// other numbers of epochs each; were the trials to go on side by side, later draws would know of one more and of
// another less than in an undisturbed run. So those behind train first, alone, up to what the store has of them. It has
// their rounds already: these are neither counted nor recorded. Then everyone is where the last round left them.

#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

// False: nobody is behind.
bool Driver::Impl::begin_catching_up() {
  for (int draw = 0; draw < ledger.drawn(); ++draw) {
    TrialRecord& entry = ledger.entry(draw);
    const bool waits = entry.phase == Phase::kPaused ||
                       (entry.phase == Phase::kReady && entry.decision == search::Decision::kContinue);
    if (!waits || entry.recorded == 0) continue;
    const Laggard stood{entry.phase, entry.decision};
    ledger.rest(draw, entry.phase, keeper.restore(entry, ledger.trial(draw).number));
    if (entry.trained < entry.recorded) {
      ledger.rest(draw, Phase::kReady, entry.state);
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
  if (seams.stop.load() == 0) reopen_arrays();
}

// Takes a trial that has caught up out of its slot; false: it is no such trial.
bool Driver::Impl::catch_up(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  const auto found = laggards.find(draw);
  if (found == laggards.end()) return false;
  TrialRecord& entry = ledger.entry(draw);
  if (entry.trained < entry.recorded) return true;
  entry.decision = found->second.decision;
  ledger.rest(draw, found->second.phase, array.extract(slot));
  array.clear(slot);
  laggards.erase(found);
  return true;
}

}  // namespace hfta::engine
