// MAPA's "greedy" (SC'21): the ring with the most bandwidth in all (AggBW).

#include "engine/allocation/policies/policies.hpp"

namespace hfta::engine {
namespace {

class Greedy final : public Policy {
 public:
  explicit Greedy(const Scores& scores) : scores_(scores) {}

  [[nodiscard]] DeviceSet choose(const Situation& situation) override {
    return best_set(scores_, situation.free, situation.queue.front().devices,
                    [this](DeviceSet set) { return scores_.total(set); });
  }

 private:
  const Scores& scores_;
};

}  // namespace

std::unique_ptr<Policy> make_greedy(const TimeModel& model) { return std::make_unique<Greedy>(model.scores()); }

}  // namespace hfta::engine
