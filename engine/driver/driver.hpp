#pragma once
/// Drives a study to its end: draws trials, keeps arrays full, records every round, stops and goes on.

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "engine/config.hpp"
#include "engine/driver/progress.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Everything of the world that the driver touches. Nothing is owned; all must outlive the driver.
struct Seams {
  storage::Store& store;
  std::vector<Trainer*> trainers;  ///< One per device, at least one.
  Clock& clock;
  storage::Checkpoints& running;   ///< States of trials that are not done.
  storage::Checkpoints& finished;  ///< Weights of the best finished trials.
  ProgressSink& progress;
  const std::atomic<int>& stop;  ///< 0, or the signal that asks to stop at the end of the round.
};

/// How a run ended.
struct Outcome {
  int stopped_by = 0;         ///< The signal; 0: the study is finished.
  bool any_complete = false;  ///< Some trial of the study is COMPLETE.
  int rounds = 0;             ///< Rounds of this run.
  double seconds = 0;         ///< Of this run.
};

/// One run of a study that is in the store already (see study.hpp), held by this process alone. What a study comes to
/// does not depend on widths, on the number of devices, or on where it was interrupted.
class Driver {
 public:
  Driver(const StudyConfig& config, const Seams& seams);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  /// Trains until the study is finished or a stop is asked for. Each round is one epoch of every trial that sits in a
  /// slot, and one transaction. To be called once.
  /// Throws whatever the seams throw; what was committed stays, and another run goes on from there.
  [[nodiscard]] Outcome run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::engine
