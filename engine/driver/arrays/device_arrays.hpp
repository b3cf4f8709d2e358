#pragma once
/// The devices of a run, and the array that each has open.

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/driver/arrays/open_array.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// Devices are identified by their index. Owns the arrays. Used by one thread, but for what OpenArray allows.
class DeviceArrays {
 public:
  using Arrays = std::vector<std::unique_ptr<OpenArray>>;

  /// `trainers`: one per device, not owned.
  explicit DeviceArrays(std::vector<Trainer*> trainers);

  [[nodiscard]] std::size_t size() const { return arrays_.size(); }
  /// REQUIRES that the device is not retired.
  [[nodiscard]] Trainer& trainer(std::size_t device) const { return *trainers_[device]; }
  /// What the device said of itself when the run began.
  [[nodiscard]] const DeviceFacts& facts(std::size_t device) const { return facts_[device]; }
  /// The device is used no more.
  void retire(std::size_t device) { trainers_[device] = nullptr; }
  [[nodiscard]] bool retired(std::size_t device) const { return trainers_[device] == nullptr; }

  /// The array that the device has open, or null.
  [[nodiscard]] std::unique_ptr<OpenArray>& array(std::size_t device) { return arrays_[device]; }
  [[nodiscard]] const std::unique_ptr<OpenArray>& array(std::size_t device) const { return arrays_[device]; }
  /// The arrays of all devices, null where none is open.
  [[nodiscard]] const Arrays& all() const { return arrays_; }
  /// The number of devices that have no array open, without those that are retired.
  [[nodiscard]] int idle() const;
  /// Whether some array has a trial.
  [[nodiscard]] bool any_at_work() const;

 private:
  std::vector<Trainer*> trainers_;  ///< Null: retired.
  std::vector<DeviceFacts> facts_;
  Arrays arrays_;
};

}  // namespace hfta::engine
