#pragma once
/// Scaled dot product attention of many short sequences, softmax(scale query key^T) value, and its gradients. Without
/// torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Sums have one order, which follows from lengths and features alone: what a head gives depends on
/// no other head, nor on how many there are.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion::cuda {

constexpr int kMostAttentionFeatures = 128;  ///< features of a query, and of a value

/// Sizes: query [slots, samples, heads, L, E], key [slots, samples, heads, S, E], value [slots, samples, heads, S, V].
/// At least 1 each, L and S at most 2^20, E and V at most kMostAttentionFeatures; slots, samples and heads have a
/// product below 2^31.
struct AttentionShape {
  unsigned slots, samples, heads;
  unsigned queries, keys;                 ///< L, S
  unsigned key_features, value_features;  ///< E, V
  double scale;
  bool causal;  ///< Query i sees keys 0 to i only.
};

/// Layout of rows: strides in numbers; the features of a row are side by side.
template <typename T>
struct AttentionRows {
  T* data;
  std::int64_t slot, sample, head, row;
};

/// Query, key and value of attention().
template <typename T>
struct AttentionInput {
  AttentionRows<const T> query, key, value;
};

/// y [slots, samples, heads, L, V], and `log_sums` [slots, samples, heads, L] in one piece: of each query, the
/// logarithm of the sum of exp(score) over the keys it sees. A query whose scores are all -infinity gives 0, and has a
/// `log_sums` of 0. What a query does not see has no effect on it, NaN or not.
void attention(const AttentionShape& shape, const AttentionInput<float>& in, const AttentionRows<float>& y,
               float* log_sums, void* stream);
void attention(const AttentionShape& shape, const AttentionInput<double>& in, const AttentionRows<double>& y,
               double* log_sums, void* stream);

/// Results of attention(), and the gradient by its y.
template <typename T>
struct AttentionResult {
  AttentionRows<const T> y, dy;
  const T* log_sums;
};

/// Gradients that attention_backward() gives; data is null where one is not wanted.
template <typename T>
struct AttentionGradients {
  AttentionRows<T> query, key, value;
};

/// Gradients by query, key and value. `workspace`: a number for each of `log_sums`.
void attention_backward(const AttentionShape& shape, const AttentionInput<float>& in,
                        const AttentionResult<float>& result, const AttentionGradients<float>& out, float* workspace,
                        void* stream);
void attention_backward(const AttentionShape& shape, const AttentionInput<double>& in,
                        const AttentionResult<double>& result, const AttentionGradients<double>& out, double* workspace,
                        void* stream);

}  // namespace hfta::fusion::cuda
