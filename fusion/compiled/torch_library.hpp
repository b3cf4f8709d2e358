#pragma once
/// LibTorch as the library of compiled graphs (fusion/cpu/library.hpp).

#include <memory>

#include "fusion/cpu/library.hpp"

namespace hfta::fusion {

/// Parts run as eager's programs of one slot, with the same counted draws, and their gradients by autograd, in the
/// thread that runs the graph. What they allocate is LibTorch's.
[[nodiscard]] std::unique_ptr<const cpu::Library> torch_library();

}  // namespace hfta::fusion
