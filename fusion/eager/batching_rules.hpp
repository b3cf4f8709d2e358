#pragma once
/// The families of rules; one file each in rules/. Every rule equals the plain op on each slot alone.

#include <vector>

#include "fusion/eager/batching_rule.hpp"

namespace hfta::fusion {

[[nodiscard]] std::vector<BatchingRule> linear_rules();     ///< linear
[[nodiscard]] std::vector<BatchingRule> conv_rules();       ///< convolutions and transposed ones
[[nodiscard]] std::vector<BatchingRule> norm_rules();       ///< batch, instance, layer and group norm
[[nodiscard]] std::vector<BatchingRule> pool_rules();       ///< max, average and adaptive pooling
[[nodiscard]] std::vector<BatchingRule> attention_rules();  ///< scaled dot product attention, with counted dropout
[[nodiscard]] std::vector<BatchingRule> recurrent_rules();  ///< LSTM, GRU, RNN, with counted dropout between layers
[[nodiscard]] std::vector<BatchingRule> embedding_rules();  ///< embedding
[[nodiscard]] std::vector<BatchingRule> random_rules();     ///< dropout and random tensors, counted, also for one slot
[[nodiscard]] std::vector<BatchingRule> shape_rules();      ///< views, joins and what counts dimensions
[[nodiscard]] std::vector<BatchingRule> loss_rules();       ///< losses, reduced within each slot
[[nodiscard]] std::vector<BatchingRule> complex_rules();    ///< complex numbers, Fourier transforms
[[nodiscard]] std::vector<BatchingRule> pointwise_rules();  ///< element by element: the op itself on [c, N, ...]

}  // namespace hfta::fusion
