#pragma once
/// The arrays that a stopped run had open.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/driver/trials/trial_table.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// A device's newest array, as it was in its last round.
struct LeftArray {
  int id = 0;
  std::size_t device = 0;  ///< Index of the device of this run that continues it.
  std::string partition;
  int width = 0;
  std::vector<std::pair<int, int>> trials;  ///< (slot, draw) of every trial whose latest epoch was in that round.
};

/// The arrays of this run's devices, named by `labels`: at most one each, in order of device. An array with trials goes
/// to the device that it was on. What is then left, arrays with trials and the latest first, goes to free devices, to
/// its own where that is free; where none is free, it is left out. Empty if the study has no round.
[[nodiscard]] std::vector<LeftArray> arrays_left(storage::Store& store, const std::string& study,
                                                 const TrialTable& table, const std::vector<std::string>& labels);

}  // namespace hfta::engine
