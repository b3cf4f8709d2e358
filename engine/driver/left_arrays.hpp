#pragma once
/// The arrays that a stopped run had open.

#include <string>
#include <utility>
#include <vector>

#include "engine/driver/trial_table.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// A device's newest array, as it was in its last round.
struct LeftArray {
  int id = 0;
  std::string partition;
  int width = 0;
  std::vector<std::pair<int, int>> trials;  ///< (slot, draw) of every trial whose latest epoch was in that round.
};

/// In order of device, as far as the devices' names show it. Empty if the study has no round.
[[nodiscard]] std::vector<LeftArray> arrays_left(storage::Store& store, const std::string& study,
                                                 const TrialTable& ledger);

}  // namespace hfta::engine
