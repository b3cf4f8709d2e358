// B tables: weight [c, V, F], indices [c, N, ...] -> [c, N, ..., F].
#include <ATen/ATen.h>

#include "fusion/eager/batching_rules.hpp"

namespace hfta::fusion {
namespace {

// Schema: weight, indices, padding_idx, scale_grad_by_freq, sparse.
std::vector<at::Tensor> one_table(const OpCall& call) {
  const at::Tensor indices = call.tensor(1);
  if (call.shared(0)) return {at::embedding(call.shared_tensor(0), indices, call.integer(2))};
  const at::Tensor weight = call.tensor(0);
  std::vector<std::int64_t> beside(static_cast<std::size_t>(indices.dim()), 1);
  beside[0] = weight.size(0);
  const at::Tensor first = at::arange(weight.size(0), indices.options()).mul_(weight.size(1)).view(beside);
  return {at::embedding(weight.flatten(0, 1), indices + first)};
}

// In one table there is one row without a gradient, not one per slot; and no slot's own frequencies.
bool plain(const Node& node) {
  const auto* padding = std::get_if<std::int64_t>(&node.args.at(2));
  return padding != nullptr && *padding < 0 && !std::get<bool>(node.args.at(3));
}

}  // namespace

std::vector<BatchingRule> embedding_rules() {
  return {{"aten::embedding", "embedding", {{"one_table", one_table, plain}, by_slot()}}};
}

}  // namespace hfta::fusion
