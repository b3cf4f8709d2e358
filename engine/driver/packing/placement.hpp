#pragma once
/// Chooses the partition that a device works on: pure functions of the waiting trials and of the devices.

#include <string>
#include <vector>

namespace hfta::engine {

/// Trials of one partition that wait for slots, and the devices that train others of it.
struct WaitingPartition {
  std::string name;
  double work = 0;   ///< Trial-epochs that wait; above 0.
  double speed = 0;  ///< Sum over the devices that have an array of it open; see DeviceFacts.
};

/// The partition for an idle device of speed `speed`. Partitions are divided so that each device gets work for an equal
/// time. Ties go to the first name. REQUIRES some partition.
[[nodiscard]] const WaitingPartition& partition_for(const std::vector<WaitingPartition>& waiting, double speed);

/// The number of arrays that a partition's trials are divided into because devices are idle: the partition's share, by
/// work, of `idle` devices; at least 1. `all_work`: the work of all partitions.
[[nodiscard]] int parts_of(double work, double all_work, int idle);

}  // namespace hfta::engine
