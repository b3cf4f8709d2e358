#pragma once
/// The passes, one file each; specialize.cpp lists them in order. Internal to fusion/passes but for tests.
///
/// Every pass takes and returns a valid graph of with_complete_arguments. It keeps weights, inputs, hypers and the
/// order of the remaining calls, and sets `index` for every call.

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// Sets training flags to false, and rates of noise without a flag to 0. Norms without running statistics still use the
/// batch's.
[[nodiscard]] SpecializedGraph with_modes_off(SpecializedGraph reading);

/// Replaces random tensors by their mean: bernoulli(p) by p, a normal tensor by its mean, a uniform tensor by the
/// middle of its range, floor(p + uniform) by p. So hand-written inverted dropout, such as stochastic depth, becomes
/// the identity. Ops without a known mean are not changed.
[[nodiscard]] SpecializedGraph with_means(SpecializedGraph reading);

/// Removes calls whose purpose is to write a weight or buffer; their results are replaced by their inputs.
[[nodiscard]] SpecializedGraph with_buffers_kept(SpecializedGraph reading);

/// W [a, b] = W_a a + W_b b. If `a` is one value repeated over dimensions that `b` runs through, W_a a is repeated too,
/// so it is computed once and added everywhere. So a linear layer or a pointwise convolution of a concatenation with a
/// repeated part (expand, repeat) becomes a sum of products of the parts, where a repeated part is multiplied before it
/// is repeated. Examples: a point's features beside those of its whole cloud (PointNet's segmentation), images beside a
/// condition, pairs of items. Same numbers up to rounding.
[[nodiscard]] SpecializedGraph with_split_products(SpecializedGraph reading);

/// Keeps the calls that the output or a write to a buffer needs. Calls that write a buffer run without gradients,
/// because a buffer must not keep a step's autograd graph.
[[nodiscard]] SpecializedGraph pruned(SpecializedGraph reading);

/// Replaces a batch norm of values that slots share, by the batch's statistics, by one that is computed once and an
/// update of each slot's own running statistics.
[[nodiscard]] SpecializedGraph with_shared_statistics(SpecializedGraph reading);

}  // namespace hfta::fusion
