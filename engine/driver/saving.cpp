// Driver: writes states to disk while the study runs.

#include <algorithm>

#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {
namespace {

// Of the time: taking states out of arrays, which training waits for; and writing them beside it, mostly waiting for
// the disk.
constexpr double kTakeShare = 1 / 50.;
constexpr double kWriteShare = 1 / 10.;
constexpr double kShortestSeconds = 1;  // between two times that a device's states are written

}  // namespace

double Driver::Impl::save_interval() const {
  return std::max({kShortestSeconds, take_seconds / kTakeShare, recorder.saving_seconds() / kWriteShare});
}

// The first round of a run is saved at once: a study that is killed again and again gets on.
void Driver::Impl::save_if_due(std::size_t device) {
  const std::optional<double>& saved = devices[device].saved;
  const bool due = !saved || seams.clock.seconds() - *saved >= save_interval();
  if (due && !recorder.saving()) save({device});
}

// States of trials that wait, and of those in the slots of these devices, which must not be at work.
void Driver::Impl::save(const std::vector<std::size_t>& those) {
  const double start = seams.clock.seconds();
  for (const int draw : ledger.take_unsaved()) {
    keeper.save(ledger.entry(draw), ledger.trial(draw).number, ledger.entry(draw).state, page);
  }
  for (const std::size_t device : those) {
    const std::unique_ptr<OpenArray>& array = packer.arrays()[device];
    for (int slot = 0; array && slot < array->width(); ++slot) {
      const int draw = array->draw_in(slot);
      if (draw == OpenArray::kEmpty || !ledger.entry(draw).changed) continue;
      keeper.save(ledger.entry(draw), ledger.trial(draw).number, array->extract(slot), page);
    }
    devices[device].saved = seams.clock.seconds();
  }
  take_seconds = seams.clock.seconds() - start;
}

// Those that wait longest go to disk: the latest draws come last in every queue.
void Driver::Impl::spill() {
  while (ledger.held_bytes() > seams.state_memory) {
    const int draw = ledger.holding().rbegin()->first;
    TrialRecord& entry = ledger.entry(draw);
    keeper.save(entry, ledger.trial(draw).number, entry.state, page);
    entry.best_state.reset();
    ledger.release(draw);
  }
}

}  // namespace hfta::engine
