#pragma once
/// Which partition a device works on: pure functions of what waits and of what devices there are.

#include <string>
#include <vector>

namespace hfta::engine {

/// Trials of one partition that wait for slots, and the devices that train others of it.
struct WaitingPartition {
  std::string name;
  double work = 0;   ///< Trial-epochs that wait; above 0.
  double speed = 0;  ///< Of the devices that have an array of it open, together; see DeviceFacts.
};

/// For a device of speed `speed` that has nothing to do: devices share the partitions so that each works through an
/// equal time's work. Ties go to the first name. REQUIRES some partition.
[[nodiscard]] const WaitingPartition& partition_for(const std::vector<WaitingPartition>& waiting, double speed);

/// Into how many arrays a partition's trials are to be divided, because devices have nothing to do: its share, by work,
/// of `idle` devices; at least 1. `all_work`: of all partitions.
[[nodiscard]] int parts_of(double work, double all_work, int idle);

}  // namespace hfta::engine
