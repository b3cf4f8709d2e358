#pragma once
/// Embeddings from a table of each slot's own by kernels of our own (fusion/cuda/embedding_kernels.hpp): their
/// gradients are summed in one order without sorting the indices, for which LibTorch launches some 25 kernels.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hfta::fusion {

/// `tables` [c, V, F] of a type that kernels_take(), `indices` [c, ...] of integers: [c, ..., F]; NaN where an index is
/// that of no row. The row `padding` gets no gradient; below 0: every row gets one. Indices that slots share, an
/// expanded view, are read as one.
[[nodiscard]] at::Tensor own_embedding(const at::Tensor& tables, const at::Tensor& indices, std::int64_t padding);

/// Whether its gradient costs less than a sort: it looks at all of a slot's indices for each tile of the table. Not by
/// the number of slots, on which a slot's bits must not depend.
[[nodiscard]] bool own_embedding_suits(std::int64_t positions, std::int64_t rows, std::int64_t features);

}  // namespace hfta::fusion
