// B tables: weight [c, V, F], indices [c, N, ...] -> [c, N, ..., F].
#include "fusion/eager/embedding.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

bool is_ours(const at::Tensor& weight, const at::Tensor& indices) {
  const std::int64_t positions = indices.numel() / std::max<std::int64_t>(1, indices.size(0));
  const bool whole = indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt;
  return whole && kernels_take(weight) && own_embedding_suits(positions, weight.size(1), weight.size(2));
}

// Schema: weight, indices, padding_idx, scale_grad_by_freq, sparse.
std::vector<at::Tensor> one_table(const OpCall& call) {
  const at::Tensor indices = call.tensor(1);
  const std::int64_t padding = call.integer(2);
  if (call.shared(0)) return {at::embedding(call.shared_tensor(0), indices, padding)};
  const at::Tensor weight = call.tensor(0);
  if (is_ours(weight, indices)) return {own_embedding(weight, indices, padding)};
  std::vector<std::int64_t> beside(static_cast<std::size_t>(indices.dim()), 1);
  beside[0] = weight.size(0);
  const at::Tensor first = at::arange(weight.size(0), indices.options()).mul_(weight.size(1)).view(beside);
  const at::Tensor y = at::embedding(weight.flatten(0, 1), indices + first);
  // In one table there is one row without a gradient, not one per slot.
  return {padding < 0 ? y : at::where(indices.eq(padding).unsqueeze(-1), y.detach(), y)};
}

// No slot's own frequencies are known in one table.
bool plain(const Node& node) { return !argument_as<bool>(node, 3); }

}  // namespace

std::vector<BatchingRule> embedding_rules() {
  return {{"aten::embedding", "embedding", {{"one_table", one_table, plain}, by_slot()}}};
}

}  // namespace hfta::fusion
