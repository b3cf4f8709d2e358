#pragma once
/// How the trials of one partition are divided among several, maybe unequal, devices.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/driver/arrays/device_arrays.hpp"
#include "engine/driver/devices/device_times.hpp"
#include "engine/driver/devices/slot_split.hpp"
#include "engine/driver/packing/width_limits.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Answers from what is known at the moment, and keeps nothing itself. Trials are identified by their draw, devices by
/// their index. Not thread-safe.
class Sharing {
 public:
  /// All must outlive this.
  Sharing(const DeviceArrays& devices, const DeviceTimes& times, WidthLimits& limits, const TrialTable& table,
          const ReadyQueue& queue)
      : devices_(devices), times_(times), limits_(limits), table_(table), queue_(queue) {}

  // `draw`: one of the partition's trials. Throws what WidthLimits::limit() throws.
  /// The slots that the device is to have; nullopt: as many as it can. A device that would only be waited for gets
  /// none, unless nobody does anything: of idle devices that leave all to one another, one has to begin.
  [[nodiscard]] std::optional<int> share_of(std::size_t device, const std::string& partition, int draw);
  /// Whether the device is to have any. REQUIRES that trials of the partition are ready.
  [[nodiscard]] bool takes_part(std::size_t device, const std::string& partition);
  /// The number of trials that the device's array has too many: clearly more than if they were divided otherwise.
  /// REQUIRES that the array has a trial.
  [[nodiscard]] int surplus(std::size_t device);
  /// The number of arrays that the partition's ready trials are divided into because devices are idle.
  [[nodiscard]] int parts_for(const std::string& partition) const;
  /// Epochs that the array still has to train until the next decisions on its trials.
  [[nodiscard]] int epochs_to_do(const OpenArray& array) const;

 private:
  /// A partition's trials as they are divided among the devices that may train them.
  struct Division {
    std::vector<std::size_t> devices;
    std::vector<int> rooms;     ///< The most slots that each may have.
    std::vector<int> occupied;  ///< The slots that each has now.
    std::vector<SlotTimes> times;
    std::vector<int> slots;  ///< The slots that each is to have.
    /// The slots that one of them is to have.
    [[nodiscard]] int share_of(std::size_t device) const;
  };
  [[nodiscard]] std::optional<Division> division(std::size_t device, const std::string& partition, int draw);
  [[nodiscard]] std::vector<std::size_t> devices_for(std::size_t device, const std::string& partition) const;
  [[nodiscard]] bool worth_moving(const Division& all, const OpenArray& array) const;

  const DeviceArrays& devices_;
  const DeviceTimes& times_;
  WidthLimits& limits_;
  const TrialTable& table_;
  const ReadyQueue& queue_;
};

}  // namespace hfta::engine
