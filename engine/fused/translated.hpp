#pragma once
/// LibTorch's exceptions as the project's own.

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <string>

#include "base/error.hpp"

namespace hfta::engine {

/// Runs `work`; a c10::Error becomes Error{kDevice} if memory ran out, else Error{kInternal}, with the message's first
/// line (LibTorch appends a C++ backtrace).
template <typename Work>
auto translated(const std::string& device, Work work) {
  try {
    return work();
  } catch (const c10::Error& e) {
    const std::string message = e.what_without_backtrace();
    const std::string line = message.substr(0, message.find('\n'));
    const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
                        message.find("can't allocate memory") != std::string::npos;
    if (memory) throw Error(ErrorKind::kDevice, fmt::format("{}: out of memory: {}", device, line));
    throw Error(ErrorKind::kInternal, fmt::format("{}: {}", device, line));
  }
}

}  // namespace hfta::engine
