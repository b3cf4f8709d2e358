#pragma once
/// A whole study in simulated time: the real driver, store and checkpoints, with curves in place of training.

#include <atomic>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/faults.hpp"
#include "base/files.hpp"
#include "engine/driver/driver.hpp"
#include "engine/simulate/curves.hpp"
#include "search/history.hpp"

namespace hfta::engine {

struct SimulationOptions {
  int devices = 1;
  /// The speed of a device at a simulated time, in seconds; unset: 1, always. Above 0.
  std::function<double(int device, double seconds)> speed = {};
  /// The part of the time of an epoch of 32 slots that is there however few slots there are. In 0..1; 0, as on a CPU
  /// that runs slot by slot.
  double fixed = 0.5;
  /// Number of CPU threads by device, each of speed 1; 0: the device is no CPU, and lends nothing. Empty: all are 0.
  std::vector<int> threads = {};
  search::History prior = {};  ///< See new_record(); of a study that is in the store already it decides nothing.
};

/// Runs the study of `config` in `store`, begun there if it is not there yet; training states go to `files`, where the
/// store says. Deterministic: two simulations of one config write the same rows, times included. Outcome::seconds is
/// simulated. Nothing of it is shown before it ends.
[[nodiscard]] Outcome simulate(const StudyConfig& config, const Curves& curves, const SimulationOptions& options,
                               storage::Store& store, Files& files, const Faults& faults, const std::atomic<int>& stop);

}  // namespace hfta::engine
