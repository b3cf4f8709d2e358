// A baseline: the free accelerators with the lowest numbers, as a program takes them that knows nothing of links.

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

class Baseline final : public Policy {
 public:
  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    return lowest(situation.free, situation.queue.front().devices);
  }
};

}  // namespace

std::unique_ptr<Policy> make_baseline(const TimeModel& /*model*/) { return std::make_unique<Baseline>(); }

}  // namespace hfta::engine
