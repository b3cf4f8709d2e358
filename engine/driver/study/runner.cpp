#include "engine/driver/study/runner.hpp"

namespace hfta::engine {

std::optional<Runner> runner_of(storage::Store& store, const std::string& study, const Clock& clock) {
  const std::optional<storage::Lease> lease = store.lease(study);
  if (!lease) return std::nullopt;
  Runner runner{lease->holder, false, std::nullopt};
  if (const std::optional<storage::LifeSign> sign = store.life_sign(study, *lease, clock)) {
    runner.alive = sign->alive;
    runner.silence = sign->silence;
  }
  return runner;
}

}  // namespace hfta::engine
