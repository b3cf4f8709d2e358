#include "engine/driver/states/catching_up.hpp"

namespace hfta::engine {

bool CatchingUp::begin() {
  for (int draw = 0; draw < table_.drawn(); ++draw) {
    TrialRecord& entry = table_.entry(draw);
    const bool waits = entry.phase == Phase::kPaused ||
                       (entry.phase == Phase::kReady && entry.decision == search::Decision::kContinue);
    if (!waits || entry.recorded == 0) continue;
    const Laggard stood{entry.phase, entry.decision};
    table_.rest(draw, entry.phase, checkpoints_.restore(entry, table_.trial(draw).number));
    if (entry.trained < entry.recorded) {
      table_.rest(draw, Phase::kReady, entry.state);
      laggards_.emplace(draw, stood);
      queue_.push(draw);
    }
    saver_.spill();
  }
  is_active_ = !laggards_.empty();
  return is_active_;
}

bool CatchingUp::take_out(OpenArray& array, int slot) {
  const int draw = array.draw_in(slot);
  const auto found = laggards_.find(draw);
  if (found == laggards_.end()) return false;
  TrialRecord& entry = table_.entry(draw);
  if (entry.trained < entry.recorded) return true;
  entry.decision = found->second.decision;
  table_.rest(draw, found->second.phase, array.extract(slot));
  array.clear(slot);
  laggards_.erase(found);
  return true;
}

}  // namespace hfta::engine
