#pragma once
/// Which shapes have a part for each sample. Internal to fusion and engine/fused.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// Whether the first dimension is the batch.
[[nodiscard]] inline bool begins_with_batch(const Shape& shape) { return !shape.empty() && shape[0] == kBatch; }

}  // namespace hfta::fusion
