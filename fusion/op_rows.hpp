#pragma once
/// How ops treat the samples of a batch: a column of the table of ops (fusion/op_traits.hpp), in a file of its own.

#include <string>

namespace hfta::fusion {

/// How a call treats the samples of a batch, each of which has its part of a tensor along one dimension: the facts from
/// which passes/rows.hpp proves that a sample's part of a result is a function of that sample alone. The promise holds
/// for calls that draw nothing and take no statistics over the batch.
enum class Rows {
  kUnknown,   ///< None: whatever part may depend on all samples.
  kElements,  ///< Element by element, tensors being broadcast.
  kAlong,     ///< Along the dimensions that its argument `dim`, `dims` or `axis` names: each place of the others apart.
  kReshaped,  ///< The elements in their order, with other sizes.
  kExpanded,  ///< The elements repeated along new dimensions or those of size 1, or whole dimensions tiled.
  kPermuted,  ///< The dimensions in another order.
  kFilled,    ///< One number in every element.
  kCounted,   ///< arange.
  kIndexed,   ///< Indexing by tensors: x[i, j].
  kMatrices,  ///< Products of the last two dimensions, the others being broadcast.
  kLinear,    ///< Along the last dimension, by a weight.
  kConvolved,  ///< Samples are dimension 0; what its weight has are the others.
  kAttention,  ///< Within the last two dimensions.
  kInner1,     ///< Within the last dimension,
  kInner2,     ///< the last two,
  kInner3,     ///< the last three.
  kPadded,     ///< Within the last dimensions, half as many as its `pad` or `padding` has numbers.
  kLayerNorm,  ///< Within the last dimensions, as many as its `normalized_shape` has.
  kChannels,   ///< Element by element, with numbers by dimension 1.
  kGroups,     ///< Samples are dimension 0; within the others.
  kLooked,     ///< Rows of a table, chosen by indices.
  kRecurrent,  ///< Samples are dimension 0 or 1, by its argument `batch_first`; those of states, dimension 1.
};

/// How an op treats samples, by schema name and overload ("aten::relu_"); kUnknown for ops that are in no row.
[[nodiscard]] Rows rows_of(const std::string& op);

/// All names of the rows, without overload: for tests.
[[nodiscard]] std::string ops_with_rows();

}  // namespace hfta::fusion
