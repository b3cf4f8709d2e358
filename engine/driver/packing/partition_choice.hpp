#pragma once
/// Which partition a device works on next, and when it leaves its array for another partition.

#include <cstddef>
#include <optional>
#include <string>

#include "engine/driver/arrays/device_arrays.hpp"
#include "engine/driver/packing/width_limits.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Answers from what is known at the moment; moves no trial. Trials are identified by their draw, devices by their
/// index. Not thread-safe.
class PartitionChoice {
 public:
  /// All must outlive this.
  PartitionChoice(const DeviceArrays& devices, WidthLimits& limits, const TrialTable& table, const ReadyQueue& queue)
      : devices_(devices), limits_(limits), table_(table), queue_(queue) {}

  /// What follows is asked after so many rounds of the study.
  void begin(int rounds) { rounds_ = rounds; }
  /// The partition for a device that is to open an array. REQUIRES that trials are ready.
  [[nodiscard]] std::string choose(std::size_t device) const;
  /// Whether so many slots keep the device busy, so that further ones would gain nothing.
  [[nodiscard]] bool keeps_busy(std::size_t device, int slots) const;

  // The next three REQUIRE that the device has an array.
  /// Whether the device's array, in which all trials have ended, gives way to draws that were made for another
  /// partition: it is not kept for the few trials that may wait in its own.
  [[nodiscard]] bool is_for_another(std::size_t device) const;
  /// The trial that waits for another array and for which the device leaves its own, which has a trial; nullopt: it
  /// stays. Throws what WidthLimits::limit() throws.
  [[nodiscard]] std::optional<int> comes_first(std::size_t device);
  /// Whether the device leaves an array that cannot be filled for a clearly fuller one.
  [[nodiscard]] bool worth_leaving(std::size_t device) const;

 private:
  [[nodiscard]] int drawn_before_round() const;
  [[nodiscard]] std::optional<std::string> fuller_elsewhere(std::size_t device);
  [[nodiscard]] std::optional<std::string> overtaken() const;

  const DeviceArrays& devices_;
  WidthLimits& limits_;
  const TrialTable& table_;
  const ReadyQueue& queue_;
  int rounds_ = 0;  ///< Rounds of the study that are over.
};

}  // namespace hfta::engine
