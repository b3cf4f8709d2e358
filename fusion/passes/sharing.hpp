#pragma once
/// Which values of a reading differ between slots, and which are shared: analyses, which change nothing.

#include <vector>

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// By Graph::weights: whether slots own it, because it is trained (and the output's gradient reaches it) or written
/// while training.
[[nodiscard]] std::vector<bool> owned_weights(const SpecializedGraph& training);

/// Properties of a reading's values.
struct Sharing {
  std::vector<bool> slotwise;  ///< By value: tensors that each slot has its own of.
  /// By value: computed after the slots part ways. Numbers and constants can be that without being slotwise.
  std::vector<bool> after_divergence;
  std::vector<bool> from_data;  ///< By value: tensors that depend on the samples.
  std::vector<bool> written;    ///< By value: some node writes its memory.
};

[[nodiscard]] Sharing sharing_of(const SpecializedGraph& reading, const std::vector<bool>& owned);

}  // namespace hfta::fusion
