#pragma once
/// What was measured of each device in this run: its epochs, with and without lent threads, and how long it takes to
/// open an array.

#include <cstddef>
#include <string>
#include <vector>

#include "engine/driver/devices/epoch_times.hpp"
#include "engine/driver/devices/lending.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// The devices as their trainers describe them, which must outlive the result.
[[nodiscard]] std::vector<EpochTimes::Device> timed_devices(const std::vector<Trainer*>& trainers);

/// Devices are identified by their index. Times are in seconds. Not thread-safe.
class DeviceTimes {
 public:
  /// What a device has trained without a break: a whole epoch, or a part of one.
  struct Part {
    double seconds = 0;
    bool lent = false;   ///< It had lent threads.
    bool ended = false;  ///< To the end of the epoch, not only up to a pause.
  };

  explicit DeviceTimes(std::vector<EpochTimes::Device> devices);

  /// The device's array of `slots` occupied slots has trained that. Returns the seconds of the epoch so far.
  double add(std::size_t device, const std::string& partition, int slots, const Part& part);
  /// The epoch at hand will not be ended: its slots are in that array no more.
  void drop(std::size_t device) { at_hand_[device] = {}; }
  /// Opening an array took that long.
  void opened(std::size_t device, double seconds) { opening_[device] = seconds; }

  /// Epochs with a device's own threads.
  [[nodiscard]] const EpochTimes& epochs() const { return epochs_; }
  /// What opening an array took last; 0: none was opened.
  [[nodiscard]] double opening(std::size_t device) const { return opening_[device]; }
  /// See LentEpochs::help().
  [[nodiscard]] bool lending_helps(std::size_t device, const std::string& partition) const {
    return lent_epochs_.help(device, partition);
  }

 private:
  /// The part of an epoch that a device has trained.
  struct EpochPart {
    double seconds = 0;
    double lent = 0;  ///< Seconds of these in which it had lent threads.
  };

  std::vector<EpochPart> at_hand_;  ///< The epoch at hand up to its last pause, by device.
  std::vector<double> opening_;     ///< By device.
  EpochTimes epochs_;
  LentEpochs lent_epochs_;
};

}  // namespace hfta::engine
