#pragma once
/// Products over concatenated channels, written as sums of smaller ones.

#include "fusion/passes/specialize.hpp"

namespace hfta::fusion {

/// W [a, b] = W_a a + W_b b, and where `a` is one thing repeated over dimensions that `b` runs through, W_a a is so
/// too: it is computed once and added everywhere. So a linear layer or a pointwise convolution of a concatenation, of
/// which some part is repeated (expand, repeat), becomes a sum of products of its parts, the repeated ones before they
/// are repeated. A point's features beside those of its whole cloud (PointNet's segmentation), images beside a
/// condition, pairs of things. Same numbers up to rounding.
[[nodiscard]] SpecializedGraph with_split_products(SpecializedGraph reading);

}  // namespace hfta::fusion
