#pragma once
/// Analyses, which change nothing: which values of a reading differ between slots, and which are shared.

#include <vector>

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// By Graph::weights: whether slots own it, because it is trained (and the output's gradient reaches it) or written
/// while training.
[[nodiscard]] std::vector<bool> owned_weights(const SpecializedGraph& training);

/// Properties of a reading's values.
struct Sharing {
  std::vector<bool> slotwise;  ///< By value: whether each slot has a tensor of its own.
  /// By value: whether it is computed after slots differ. Numbers and constants can be that without being slotwise.
  std::vector<bool> after_divergence;
  std::vector<bool> from_data;  ///< By value: whether the tensor depends on the samples.
  std::vector<bool> written;    ///< By value: whether some node writes its memory.
};

[[nodiscard]] Sharing sharing_of(const SpecializedGraph& reading, const std::vector<bool>& owned);

}  // namespace hfta::fusion
