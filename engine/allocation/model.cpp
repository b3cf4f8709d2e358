#include "engine/allocation/model.hpp"

#include <algorithm>

namespace hfta::engine {

TimeModel::TimeModel(const Scores& scores, Bandwidth which)
    : scores_(scores), which_(which), best_(kMostRequested + 1) {
  for (int size = 1; size <= kMostRequested; ++size) {
    for (const DeviceSet set : scores_.sets(size)) {
      double& best = best_[static_cast<std::size_t>(size)];
      best = std::max(best, bandwidth(set));
    }
  }
}

double TimeModel::slowdown(const Request& request, DeviceSet set) const {
  if (request.devices < 2) return 1;
  const double best = best_[static_cast<std::size_t>(request.devices)];
  return 1 - request.communication + request.communication * best / bandwidth(set);
}

}  // namespace hfta::engine
