#pragma once
/// The families of rules; one file each in rules/. Every rule equals the plain op on each slot alone.

#include <vector>

#include "fusion/array/rule.hpp"

namespace hfta::fusion {

[[nodiscard]] std::vector<Rule> linear_rules();   ///< linear
[[nodiscard]] std::vector<Rule> conv_rules();     ///< conv1d, conv2d
[[nodiscard]] std::vector<Rule> norm_rules();     ///< batch_norm, layer_norm
[[nodiscard]] std::vector<Rule> pool_rules();     ///< max, average and adaptive pooling
[[nodiscard]] std::vector<Rule> dropout_rules();  ///< counted dropout, also for one slot
[[nodiscard]] std::vector<Rule> plain_rules();    ///< ops that run on [c, N, ...] as they are

}  // namespace hfta::fusion
