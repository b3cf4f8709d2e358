#pragma once
/// Finds the batch dimension of the inputs, and its bounds.

#include <cstdint>
#include <vector>

#include "fusion/exported.hpp"
#include "fusion/pt2/signature.hpp"
#include "fusion/pt2/symbols.hpp"

namespace hfta::fusion::pt2 {

struct Batch {
  std::vector<ExportedTensor> inputs;
  Symbols symbols;
  std::int64_t fixed = 0;     ///< See Graph::fixed_batch.
  std::int64_t largest = 0;   ///< See Graph::largest_batch.
  std::int64_t smallest = 0;  ///< See BatchLimits::smallest.
};

/// Dimension 0 of every input is the batch. Throws Error{kConfig}: inputs without dimensions, inputs that disagree.
[[nodiscard]] Batch batch_from(const Signature& signature, const Reader& program);

}  // namespace hfta::fusion::pt2
