#pragma once
/// Applying gradients to their weights while the backward goes on, as K. Lv et al. do (Full Parameter Fine-tuning for
/// Large Language Models with Limited Resources, 2023, arXiv:2306.09782, section 3.1): a gradient is still in the cache
/// when the optimizer reads it, and its memory is free for others afterwards.

#include <cstdint>
#include <span>
#include <vector>

#include "fusion/cpu/recompute.hpp"

namespace hfta::fusion::cpu {

/// Puts steps that call Run::apply into the schedule: each gradient's turn is behind the last step that reads or writes
/// it or the weight. Gradients of fewer than `bytes` together wait for the next one's turn, or for the end.
/// `weights`: by Graph::weights; `outputs`: what is read when the run has ended.
void apply_gradients(Recomputing& all, std::span<const WeightGradient> gradients, std::span<const Tensor> weights,
                     std::span<const Tensor> outputs, std::int64_t bytes);

}  // namespace hfta::fusion::cpu
