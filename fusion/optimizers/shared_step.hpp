#pragma once
/// An optimizer's step whose elements a team shares, on a CPU. Without torch.

#include "fusion/optimizers/slot_step.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion {

/// step_slot() by a team (null: the caller alone), to the same bits.
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<float>> rows, std::span<const SlotStep> slot);
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<double>> rows, std::span<const SlotStep> slot);

}  // namespace hfta::fusion
