#pragma once
/// When trials are drawn for the slots of devices, and how many.

#include <cstddef>
#include <functional>
#include <optional>

#include "engine/driver/arrays/device_arrays.hpp"
#include "engine/driver/packing/partition_choice.hpp"
#include "engine/driver/packing/width_limits.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Draws ahead of slots, or for the slots that are empty, as the method allows. Devices are identified by their index.
/// Not thread-safe.
class SlotDraws {
 public:
  /// Plans at most that many more trials and puts them in the queue; false: there are none. `like`: a draw; one
  /// configuration is planned, of that draw's partition if possible.
  using Draw = std::function<bool(int most, std::optional<int> like)>;

  /// All but `draw` must outlive this. `refill` false: emptied slots stay empty until the whole array is empty.
  SlotDraws(const DeviceArrays& devices, WidthLimits& limits, const PartitionChoice& choice, const TrialTable& table,
            const ReadyQueue& queue, bool refill, Draw draw);

  /// To be called before the device's slots are filled. Throws what `draw` and WidthLimits::limit() throw.
  void draw_for(std::size_t device);
  /// Plans as far ahead of the trials that have begun as the method may. REQUIRES !TrialTable::learns().
  void plan_ahead();

 private:
  const DeviceArrays& devices_;
  WidthLimits& limits_;
  const PartitionChoice& choice_;
  const TrialTable& table_;
  const ReadyQueue& queue_;
  bool refill_;
  Draw draw_;
};

}  // namespace hfta::engine
