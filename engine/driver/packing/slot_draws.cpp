#include "engine/driver/packing/slot_draws.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "engine/driver/packing/draw_rules.hpp"

namespace hfta::engine {
namespace {

constexpr int kDrawChunk = 256;

}  // namespace

SlotDraws::SlotDraws(const DeviceArrays& devices, WidthLimits& limits, const PartitionChoice& choice,
                     const TrialTable& table, const ReadyQueue& queue, bool refill, Draw draw)
    : devices_(devices),
      limits_(limits),
      choice_(choice),
      table_(table),
      queue_(queue),
      refill_(refill),
      draw_(std::move(draw)) {}

// Where trials are drawn only for free slots, these are the empty ones of the device's array, or as many as a new array
// can have. The partition of a draw is known only afterwards: draws of other partitions wait for arrays of their own,
// and only so many may wait. Whether to draw depends only on the waiting trials and the open arrays: a run that was
// killed between two draws continues with the second.
void SlotDraws::draw_for(std::size_t device) {
  if (!table_.learns()) return plan_ahead();
  const std::unique_ptr<OpenArray>& array = devices_.array(device);
  const bool is_open = array && array->occupied() > 0;
  if (is_open && !refill_) return;
  for (;;) {
    if (queue_.ready() == 0 && !is_open) {
      if (!draw_(1, std::nullopt)) return;
      continue;
    }
    const std::string partition = is_open ? array->partition() : choice_.choose(device);
    const int one = is_open ? array->some_draw() : queue_.front(partition);
    const int most = limits_.limit(device, partition, one);
    const int wanted = is_open ? most - array->occupied() : most;
    const int ready = queue_.ready(partition);
    const int later =
        (is_open && choice_.keeps_busy(device, array->occupied() + ready) ? 1 : widths_ahead(table_)) * most;
    if (ready >= wanted || queue_.ready() >= wanted + later) return;
    const bool joins = draws_join(table_) && 2 * (queue_.ready() - ready) >= most;
    if (!draw_(wanted - ready, joins ? std::optional(one) : std::nullopt)) return;
  }
}

// Methods that do not learn may draw ahead. Hyperband's rungs wait for all trials of a bracket, so these are planned
// together; other trials are planned as arrays need them. A trial enters the store when it gets a slot: until then an
// enqueued trial may come before it. The number of planned trials depends on how many have begun, not on how many have
// rows or wait: widths depend on it, so a resumed study must plan as one that was never stopped.
void SlotDraws::plan_ahead() {
  const bool all = table_.scheduler().capacity().has_value();
  const auto ahead = std::int64_t{kAhead} * limits_.widest() * static_cast<std::int64_t>(devices_.size());
  // It plans up to the next multiple: from wherever a run begins, it plans as far as one that was never stopped.
  while ((all || table_.drawn() < table_.begun() + ahead) &&
         draw_(kDrawChunk - table_.drawn() % kDrawChunk, std::nullopt)) {
  }
}

}  // namespace hfta::engine
