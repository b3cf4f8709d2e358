#pragma once
/// Ranks that have each run some samples of a batch agree on its loss and gradients.

#include <span>
#include <vector>

#include "fusion/collectives.hpp"

namespace hfta::fusion {

/// What a rank has of one slot's batch, the mean over its own samples; replaced by that over all ranks'.
template <typename T>
struct SlotMean {
  double loss = 0;
  double weight = 0;                    ///< What the mean was divided by; 0: nothing of these samples counts.
  std::vector<std::span<T>> gradients;  ///< In the same order and of the same sizes at every rank.
};

/// The mean of the ranks' losses and gradients by their weights w, sum w_r g_r / sum w_r, and the sum of weights. A
/// rank whose weight is 0 adds nothing, whatever it has, unless all are 0: then the mean is that of what the ranks
/// have. Equal bits at every rank. `memory`: grows to the size of all gradients, and may be passed again.
void take_mean(Collectives& group, std::span<SlotMean<float>> slots, std::vector<float>& memory);
void take_mean(Collectives& group, std::span<SlotMean<double>> slots, std::vector<double>& memory);

}  // namespace hfta::fusion
