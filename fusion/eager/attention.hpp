#pragma once
/// Scaled dot product attention over short sequences, by kernels of our own (fusion/cuda/attention_kernels.hpp):
/// without mask, dropout and grouped queries.

#include <ATen/core/Tensor.h>

namespace hfta::fusion {

/// Whether own_attention() is for `query` [c, N, heads..., L, E], `key` [c, N, heads..., S, E] and `value` [c, N,
/// heads..., S, V]: of one type and the same slots, samples and heads, none of them empty; L and S at most 64, E and V
/// at most 32. The kernels read longer and wider ones too, but those are left to LibTorch's.
[[nodiscard]] bool attention_takes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// softmax(scale query key^T) value, [c, N, heads..., L, V]; with `causal` query i sees keys 0 to i. For what
/// attention_takes(), of a type that kernels_take(). They are read as they lie where features are side by side, and
/// result and gradients are dense with dimensions in the order that query, and what the gradient is of, have in memory.
[[nodiscard]] at::Tensor own_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                       double scale, bool causal);

}  // namespace hfta::fusion
