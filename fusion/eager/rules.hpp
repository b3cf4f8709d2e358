#pragma once
/// The families of rules; one file each in rules/. Every rule equals the plain op on each slot alone.

#include <vector>

#include "fusion/eager/rule.hpp"

namespace hfta::fusion {

[[nodiscard]] std::vector<Rule> linear_rules();     ///< linear
[[nodiscard]] std::vector<Rule> conv_rules();       ///< convolutions and transposed ones
[[nodiscard]] std::vector<Rule> norm_rules();       ///< batch, instance, layer and group norm
[[nodiscard]] std::vector<Rule> pool_rules();       ///< max, average and adaptive pooling
[[nodiscard]] std::vector<Rule> attention_rules();  ///< scaled dot product attention, with counted dropout
[[nodiscard]] std::vector<Rule> recurrent_rules();  ///< LSTM, GRU, RNN, with counted dropout between layers
[[nodiscard]] std::vector<Rule> embedding_rules();  ///< embedding
[[nodiscard]] std::vector<Rule> random_rules();     ///< dropout and random tensors, counted, also for one slot
[[nodiscard]] std::vector<Rule> shape_rules();      ///< views, joins and what counts dimensions
[[nodiscard]] std::vector<Rule> pointwise_rules();  ///< element by element: the op itself on [c, N, ...]

}  // namespace hfta::fusion
