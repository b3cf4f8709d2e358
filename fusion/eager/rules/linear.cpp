// B linear layers: x [c, N, ..., in], weight [c, out, in], bias [c, out] -> [c, N, ..., out].
#include "fusion/eager/linear.hpp"

#include <ATen/ATen.h>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

// A layer that slots share sees their samples as one batch.
bool is_shared(const OpCall& call) { return call.shared(1) && call.shared(2); }

// All of one type, in which the product is to be computed.
bool is_ours(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool same =
      weight.scalar_type() == x.scalar_type() && (!bias.defined() || bias.scalar_type() == x.scalar_type());
  return same && kernels_take(x) && !is_lowered(x);
}

// Runs the linear layer, and the relu behind it if call.relu().
std::vector<at::Tensor> batched(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  const auto behind = [&](const at::Tensor& y) { return call.relu() ? at::relu(y) : y; };
  if (is_shared(call)) return {behind(at::linear(x, call.shared_tensor(1), call.shared_tensor(2)))};
  const at::Tensor weight = call.tensor(1), bias = call.tensor(2);
  const at::Tensor rows = x.reshape({x.size(0), -1, x.size(-1)});
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(1);
  if (bias.defined() && is_ours(rows, weight, bias)) {
    return {own_linear(rows, weight, bias, call.relu()).view(shape)};
  }
  const at::Tensor product = bias.defined() ? at::baddbmm(bias.unsqueeze(1), rows, weight.transpose(1, 2))
                                            : at::bmm(rows, weight.transpose(1, 2));
  return {behind(product.view(shape))};
}

// batched() with the weight in front, whose gradient is then in its own layout: better where weights are large.
std::vector<at::Tensor> weight_first(const OpCall& call) {
  if (is_shared(call)) return batched(call);
  const at::Tensor x = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2);
  const at::Tensor rows = x.reshape({x.size(0), -1, x.size(-1)}), columns = rows.transpose(1, 2);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(1);
  if (is_ours(rows, weight, bias)) return {own_weight_first_linear(rows, weight, bias).reshape(shape)};
  const at::Tensor product =
      bias.defined() ? at::baddbmm(bias.unsqueeze(2), weight, columns) : at::bmm(weight, columns);
  return {product.transpose(1, 2).reshape(shape)};
}

}  // namespace

std::vector<BatchingRule> linear_rules() {
  return {{"aten::linear",
           "linear",
           {{"batched", batched, nullptr, true}, {"weight_first", weight_first, nullptr}, by_slot()}}};
}

}  // namespace hfta::fusion
