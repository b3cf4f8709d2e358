#pragma once
/// Runs a study to its end: draws trials, keeps arrays full, records every round, stops and resumes.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/faults.hpp"
#include "engine/config.hpp"
#include "engine/driver/devices/device_workers.hpp"
#include "engine/driver/progress.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Everything outside itself that the driver uses. Nothing is owned; all must outlive the driver.
struct DriverDependencies {
  storage::Store& store;
  std::vector<Trainer*> trainers;  ///< One per device, at least one.
  DeviceWorkers& workers;          ///< One worker per trainer.
  Clock& clock;
  storage::StudyStates& states;
  EventSink& events;             ///< Called by one thread at a time, not always the caller's.
  const std::atomic<int>& stop;  ///< 0, or the signal that asks to stop after the step at hand.
  const Faults& faults;
  bool record_beside = true;  ///< Write beside training; false: in between, for tests and simulations.
  std::size_t state_memory = std::size_t{4}
                             << 30;  ///< Bytes of paused states kept in memory; further states are on disk alone.
};

/// How a run ended.
struct Outcome {
  int stopped_by = 0;         ///< The signal that stopped it; 0: the study is finished, or at its budget or target.
  bool any_complete = false;  ///< Some trial of the study is COMPLETE.
  std::string ended_by;       ///< What ended the study before all its trials were done (Progress::ended_by).
  int rounds = 0;             ///< Rounds of this run.
  double seconds = 0;         ///< Seconds of this run.
};

/// One run of a study that is in the store already (see study.hpp) and that only this process runs. The result of a
/// study does not depend on widths, on the number or speed of devices, or on where it was interrupted.
class Driver {
 public:
  Driver(const StudyConfig& config, const DriverDependencies& dependencies);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Trains until the study is finished, has come to its budget or target, or a stop is asked for. What is left keeps
  /// its states, and can be gone on with. A round is one epoch of every trial in one device's array; devices run their
  /// rounds in parallel, each at its own pace. If a device fails, the other devices train its trials. To be called
  /// once. Throws whatever the dependencies throw, and Error{kDevice} when no device is left; what was committed stays,
  /// and another run goes on from there.
  [[nodiscard]] Outcome run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::engine
