#pragma once
/// The activity of devices between two rounds: measuring, or somewhere in an epoch.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// The activity of one device. Written by the threads that train, read by the one that shows it.
class Activity {
 public:
  /// `clock` must outlive this.
  Activity(std::string device, const Clock& clock) : device_(std::move(device)), clock_(clock) {}

  /// The device is at `what` ("measuring how to run") from now on, until end().
  void begin(const std::string& what);
  void end();
  /// One training step of one chunk of slots is done.
  void step() { ++steps_; }

  /// "measuring how to run on cpu for 12 s", "in an epoch on cpu for 12 s, 345 steps"; nullopt: it is at nothing, or
  /// not for so long yet.
  [[nodiscard]] std::optional<std::string> text(double least_seconds) const;

 private:
  std::string device_;
  const Clock& clock_;
  std::atomic<std::int64_t> steps_{0};
  mutable std::mutex mutex_;  // guards the members below
  std::string what_;
  double began_ = 0;
};

/// `trainer`, with what it does told to `activity`. Both must outlive the result and its arrays.
[[nodiscard]] std::unique_ptr<Trainer> watched(Trainer& trainer, Activity& activity);

}  // namespace hfta::engine
