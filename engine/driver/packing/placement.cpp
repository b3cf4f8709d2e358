#include "engine/driver/packing/placement.hpp"

#include <algorithm>
#include <cmath>

namespace hfta::engine {

const WaitingPartition& partition_for(const std::vector<WaitingPartition>& waiting, double speed) {
  const auto longer = [&](const WaitingPartition& a, const WaitingPartition& b) {
    const double time_a = a.work / (a.speed + speed), time_b = b.work / (b.speed + speed);
    return time_a != time_b ? time_a > time_b : a.name < b.name;
  };
  return *std::min_element(waiting.begin(), waiting.end(), longer);
}

int parts_of(double work, double all_work, int idle) {
  return std::max(1, static_cast<int>(std::lround(idle * (work / std::max(1.0, all_work)))));
}

}  // namespace hfta::engine
