#pragma once
/// The passes, one file each; specialize.cpp lists them in order. Internal to fusion/passes but for tests.
///
/// Every pass takes and gives a graph of with_complete_arguments that holds together, keeps weights, inputs and hypers
/// and the order of the calls that stay, and gives `index` for every call.

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// Flags of training are false, rates of noise without a flag 0. Norms that keep no running statistics go on with the
/// batch's.
[[nodiscard]] SpecializedGraph with_modes_off(SpecializedGraph reading);

/// bernoulli(p) is p, a normal tensor its mean, a uniform one the middle of its range; floor(p + uniform) is p. So
/// inverted dropout written by hand, as stochastic depth is, becomes the identity. What has no known mean stays.
[[nodiscard]] SpecializedGraph with_means(SpecializedGraph reading);

/// Calls that are written for what they do to a weight or buffer are left out; what they give is what they were given.
[[nodiscard]] SpecializedGraph with_buffers_kept(SpecializedGraph reading);

/// W [a, b] = W_a a + W_b b, and where `a` is one thing repeated over dimensions that `b` runs through, W_a a is so
/// too: it is computed once and added everywhere. So a linear layer or a pointwise convolution of a concatenation, of
/// which some part is repeated (expand, repeat), becomes a sum of products of its parts, the repeated ones before they
/// are repeated. A point's features beside those of its whole cloud (PointNet's segmentation), images beside a
/// condition, pairs of things. Same numbers up to rounding.
[[nodiscard]] SpecializedGraph with_split_products(SpecializedGraph reading);

/// The calls that the output or a write to a buffer needs. Those that write a buffer run without gradients: a buffer is
/// no place for a step's history.
[[nodiscard]] SpecializedGraph pruned(SpecializedGraph reading);

/// Batch norm of values that slots share, by the batch's statistics, becomes one that is computed once and an update of
/// each slot's own running statistics.
[[nodiscard]] SpecializedGraph with_shared_statistics(SpecializedGraph reading);

}  // namespace hfta::fusion
