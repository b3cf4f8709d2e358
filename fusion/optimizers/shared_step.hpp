#pragma once
/// An optimizer's step whose elements a team shares, on a CPU. Without torch.

#include <optional>

#include "fusion/optimizers/slot_step.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion {

/// step_slot() by a team (null: the caller alone), to the same bits. `factor`: on the gradients, where these rows are
/// not all by which the slot is clipped; without it as SlotStep::clip_norm has it.
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<float>> rows, std::span<const SlotStep> slot,
                std::optional<double> factor = {});
void share_step(Team* team, OptimizerKind kind, std::span<const SlotRow<double>> rows, std::span<const SlotStep> slot,
                std::optional<double> factor = {});

}  // namespace hfta::fusion
