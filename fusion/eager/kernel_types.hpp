#pragma once
/// Code that ops share which kernels of ours run: which numbers the kernels take, and where they are launched.

#include <ATen/core/Tensor.h>

#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/eager/stream_pool.hpp"

namespace hfta::fusion {

/// Whether kernels take `x`: float32 or float64 on a GPU, in a build with kernels.
[[nodiscard]] inline bool kernels_take(const at::Tensor& x) {
  const bool floats = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return x.is_cuda() && floats && cuda::built();
}

/// A cudaStream_t: the calling thread's. Null for a CPU, on which tests run the kernels.
[[nodiscard]] inline void* native_stream(const at::Device& device) {
  return device.is_cpu() ? nullptr : current_stream(device).native_handle();
}

/// Calls work(a number of x's type), float or double.
template <typename Work>
void typed(const at::Tensor& x, Work work) {
  if (x.scalar_type() == at::kDouble) {
    work(double{});
  } else {
    work(float{});
  }
}

/// The numbers of `t`; null if it is undefined.
template <typename T>
[[nodiscard]] const T* numbers_or_null(const at::Tensor& t) {
  return t.defined() ? t.const_data_ptr<T>() : nullptr;
}

/// Whether all slots of `t`, [c, ...], are the same memory: an expanded view.
[[nodiscard]] inline bool slots_share(const at::Tensor& t) { return t.size(0) > 1 && t.stride(0) == 0; }

}  // namespace hfta::fusion
