#pragma once
// Metrics of one slot by their definitions, sample by sample and pair by pair.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace hfta::fusion::testing {

/// scores [M, C], target [M]; every recorded name of class scores, top_1 to top_3. No perplexity.
[[nodiscard]] std::map<std::string, double> naive_classes(const at::Tensor& scores, const at::Tensor& target);
/// scores, yes [M, K]; predictions are yes above the threshold.
[[nodiscard]] std::map<std::string, double> naive_columns(const at::Tensor& scores, const at::Tensor& yes,
                                                          double threshold);
/// output, target [N, K]
[[nodiscard]] std::map<std::string, double> naive_values(const at::Tensor& output, const at::Tensor& target);

}  // namespace hfta::fusion::testing
