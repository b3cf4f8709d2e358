// MAPA's "preserve" (SC'21, algorithm 1): a bandwidth-sensitive array gets the best ring by predicted effective
// bandwidth (EffBW); any other one gets what leaves the most NVLink bandwidth among the accelerators that stay free, of
// equals the ring with the most bandwidth in all.

#include <utility>

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

class Preserve final : public Policy {
 public:
  explicit Preserve(const Scores& scores) : scores_(scores) {}

  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    const Request& request = situation.queue.front();
    if (request.sensitive && request.devices > 1) {
      return best_set(scores_, situation.free, request.devices, [this](DeviceSet set) { return scores_.mapa(set); });
    }
    return best_set(scores_, situation.free, request.devices,
                    [&](DeviceSet set) { return std::pair(scores_.within(situation.free ^ set), scores_.total(set)); });
  }

 private:
  const Scores& scores_;
};

}  // namespace

std::unique_ptr<Policy> make_preserve(const TimeModel& model) { return std::make_unique<Preserve>(model.scores()); }

}  // namespace hfta::engine
