#pragma once
/// LibTorch's exceptions as the project's own.

#include <fmt/format.h>

#include <new>
#include <string>

#include "base/error.hpp"
#include "fusion/execution/torch_error.hpp"

namespace hfta::engine {

/// Runs `work`; a c10::Error becomes Error{kMemory} if memory ran out (std::bad_alloc too), Error{kDevice} if the
/// device failed while it ran, else Error{kInternal}, with the message's first line (LibTorch appends a C++ backtrace).
template <typename Work>
auto translated(const std::string& device, Work work) {
  try {
    return work();
  } catch (const c10::Error& e) {
    const std::string line = fusion::first_line(e);
    const fusion::TorchFault fault = fusion::fault_of(e);
    if (fault == fusion::TorchFault::kMemory) {
      throw Error(ErrorKind::kMemory, fmt::format("{}: out of memory: {}", device, line));
    }
    const bool failed = fault == fusion::TorchFault::kDevice;
    throw Error(failed ? ErrorKind::kDevice : ErrorKind::kInternal, fmt::format("{}: {}", device, line));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kMemory, fmt::format("{}: out of memory", device));
  }
}

}  // namespace hfta::engine
