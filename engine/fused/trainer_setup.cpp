#include "engine/fused/trainer_setup.hpp"

#include <algorithm>

#include "base/limits.hpp"

namespace hfta::engine {

TrainerSetup::TrainerSetup(const TrainerOptions& options)
    : options_(options), cores_(usable_cores()), cuda_graphs_(fusion::cuda_graphs(device())) {}

int TrainerSetup::threads() const {
  if (options_.threads) return *options_.threads;
  const int all = options_.config.threads.value_or(cores_);
  return std::max(1, all / options_.sharers);
}

int TrainerSetup::ranks() const { return options_.group == nullptr ? 1 : options_.group->ranks(); }

int TrainerSetup::stages() const { return options_.config.divide == Divide::kStages ? ranks() : 1; }

}  // namespace hfta::engine
