// Driver: writes states to disk while the study runs.

#include <algorithm>

#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {
namespace {

// Shares of the time: to take states out of arrays, which training waits for; and to write them beside it, mostly
// waiting for the disk.
constexpr double kTakeShare = 1 / 50.;
constexpr double kWriteShare = 1 / 10.;
constexpr double kShortestSeconds = 1;  // least time between two saves of a device's states

}  // namespace

double Driver::Impl::save_interval() const {
  return std::max({kShortestSeconds, take_seconds / kTakeShare, writer.saving_seconds() / kWriteShare});
}

// The first round of a run is saved at once: a study that is killed again and again gets on.
void Driver::Impl::save_if_due(std::size_t device) {
  const std::optional<double>& saved = devices[device].saved;
  const bool due = !saved || dependencies.clock.seconds() - *saved >= save_interval();
  if (due && !writer.saving()) save({device});
}

// Saves states of trials that wait, and of those in the slots of these devices, which must not be at work.
void Driver::Impl::save(const std::vector<std::size_t>& those) {
  const double start = dependencies.clock.seconds();
  for (const int draw : table.take_unsaved()) {
    checkpoints.save(table.entry(draw), table.trial(draw).number, table.entry(draw).state, batch);
  }
  for (const std::size_t device : those) {
    const std::unique_ptr<OpenArray>& array = array_scheduler.arrays()[device];
    for (int slot = 0; array && slot < array->width(); ++slot) {
      const int draw = array->draw_in(slot);
      if (draw == OpenArray::kEmpty || !table.entry(draw).changed) continue;
      const HeldState state = array->extract(slot);
      if (state) checkpoints.save(table.entry(draw), table.trial(draw).number, state, batch);
    }
    devices[device].saved = dependencies.clock.seconds();
  }
  take_seconds = dependencies.clock.seconds() - start;
}

// Moves the states that wait longest to disk: the latest draws come last in every queue.
void Driver::Impl::spill() {
  while (table.held_bytes() > dependencies.state_memory) {
    const int draw = table.holding().rbegin()->first;
    TrialRecord& entry = table.entry(draw);
    checkpoints.save(entry, table.trial(draw).number, entry.state, batch);
    entry.best_state.reset();
    table.release(draw);
  }
}

}  // namespace hfta::engine
