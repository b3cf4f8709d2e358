#pragma once
/// LibTorch's exceptions as the project's own.

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "fusion/execution/torch_error.hpp"

namespace hfta::engine {

/// Runs `work`; a c10::Error becomes Error{kMemory} if memory ran out (std::bad_alloc too), Error{kDevice} if the
/// device failed while it ran, else Error{kInternal}, with the message's first line (LibTorch appends a C++ backtrace).
template <typename Work>
auto translated(const std::string& device, Work work) {
  try {
    return fusion::with_faults_told(device, work);
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::kInternal, fmt::format("{}: {}", device, fusion::first_line(error)));
  }
}

}  // namespace hfta::engine
