#pragma once
/// Times of epochs on each device, by number of slots: from measured epochs, and predicted where none was measured.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/driver/devices/slot_split.hpp"

namespace hfta::engine {

class EpochTimes {
 public:
  /// Facts of a device that are known before it trains.
  struct Device {
    double speed = 1;  ///< See DeviceFacts.
    /// See Trainer::step_seconds.
    std::function<std::optional<double>(const std::string& partition, int slots)> step_seconds;
  };
  explicit EpochTimes(std::vector<Device> devices) : devices_(std::move(devices)), measured_(devices_.size()) {}

  /// An epoch of `slots` occupied slots took that long. The last epochs count most, so that a device that becomes
  /// slower is seen as such within two or three. No time at all says nothing. REQUIRES slots > 0.
  void add(std::size_t device, const std::string& partition, int slots, double seconds);

  /// The time of an epoch of so many slots, in seconds; nullopt: no epoch of the partition was measured on the device.
  [[nodiscard]] std::optional<double> seconds(std::size_t device, const std::string& partition, int slots) const;

  /// The times of 0 to `rooms[i]` slots on `devices[i]`, in one unit. The shape of a device's table is what it predicts
  /// for a training step, or else proportional to the slots; measured epochs give its scale. A device that has neither
  /// gets the table of one that has, times how much slower it is: in another partition that both trained, or else as
  /// their speeds say.
  [[nodiscard]] std::vector<SlotTimes> tables(const std::string& partition, const std::vector<std::size_t>& devices,
                                              const std::vector<int>& rooms) const;

 private:
  struct Scale {
    double factor = 0;  ///< Seconds of an epoch over shape().
    int epochs = 0;
  };
  [[nodiscard]] std::optional<Scale> scale_of(std::size_t device, const std::string& partition) const;
  [[nodiscard]] double shape(std::size_t device, const std::string& partition, int slots) const;
  [[nodiscard]] bool predicts(std::size_t device, const std::string& partition) const;
  [[nodiscard]] double slower_than(std::size_t other, std::size_t device) const;

  std::vector<Device> devices_;
  std::vector<std::map<std::string, Scale>> measured_;  ///< By device and partition.
};

}  // namespace hfta::engine
