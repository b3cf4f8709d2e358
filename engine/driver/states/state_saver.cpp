#include "engine/driver/states/state_saver.hpp"

#include <algorithm>

namespace hfta::engine {
namespace {

// Shares of the time: to take states out of arrays, which training waits for; and to write them beside it, mostly
// waiting for the disk.
constexpr double kTakeShare = 1 / 50.;
constexpr double kWriteShare = 1 / 10.;
constexpr double kShortestSeconds = 1;  // least time between two saves of a device's states

}  // namespace

StateSaver::StateSaver(TrialTable& table, CheckpointManager& checkpoints, const StudyWriter& writer,
                       const DeviceArrays::Arrays& arrays, const Clock& clock, std::size_t memory, WriteBatch& batch)
    : table_(table),
      checkpoints_(checkpoints),
      writer_(writer),
      arrays_(arrays),
      clock_(clock),
      memory_(memory),
      batch_(batch),
      saved_(arrays.size()) {}

double StateSaver::interval() const {
  return std::max({kShortestSeconds, take_seconds_ / kTakeShare, writer_.saving_seconds() / kWriteShare});
}

void StateSaver::save_if_due(std::size_t device) {
  const std::optional<double>& saved = saved_[device];
  const bool due = !saved || clock_.seconds() - *saved >= interval();
  if (due && !writer_.saving()) save({device});
}

void StateSaver::save(const std::vector<std::size_t>& those) {
  const double start = clock_.seconds();
  for (const int draw : table_.take_unsaved()) {
    checkpoints_.save(table_.entry(draw), table_.trial(draw).number, table_.entry(draw).state, batch_);
  }
  for (const std::size_t device : those) {
    const std::unique_ptr<OpenArray>& array = arrays_[device];
    for (int slot = 0; array && slot < array->width(); ++slot) {
      const int draw = array->draw_in(slot);
      if (draw == OpenArray::kEmpty || !table_.entry(draw).changed) continue;
      const HeldState state = array->extract(slot);
      if (state) checkpoints_.save(table_.entry(draw), table_.trial(draw).number, state, batch_);
    }
    saved_[device] = clock_.seconds();
  }
  take_seconds_ = clock_.seconds() - start;
}

void StateSaver::spill() {
  while (table_.held().bytes() > memory_) {
    const int draw = table_.held().by_draw().rbegin()->first;
    TrialRecord& entry = table_.entry(draw);
    checkpoints_.save(entry, table_.trial(draw).number, entry.state, batch_);
    entry.best_state.reset();
    table_.release(draw);
  }
}

}  // namespace hfta::engine
