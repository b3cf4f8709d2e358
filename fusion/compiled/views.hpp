#pragma once
/// Buffers of a compiled graph as LibTorch's tensors.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "fusion/cpu/compiled_graph.hpp"

namespace hfta::fusion {

/// The tensor over its memory: no copy. It must not outlive the buffer.
[[nodiscard]] at::Tensor view_of(const cpu::Tensor& tensor, std::byte* buffer);
[[nodiscard]] inline at::Tensor view_of(const cpu::Tensor& tensor, std::span<std::byte* const> buffers) {
  return view_of(tensor, buffers[static_cast<std::size_t>(tensor.buffer)]);
}

}  // namespace hfta::fusion
