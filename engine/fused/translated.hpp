#pragma once
/// LibTorch's exceptions as the project's own.

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>
#include <string>

#include "base/error.hpp"

namespace hfta::engine {

/// Runs `work`; a c10::Error becomes Error{kMemory} if memory ran out (std::bad_alloc too), Error{kDevice} if the
/// device failed while it ran, else Error{kInternal}, with the message's first line (LibTorch appends a C++ backtrace).
template <typename Work>
auto translated(const std::string& device, Work work) {
  try {
    return work();
  } catch (const c10::Error& e) {
    const std::string message = e.what_without_backtrace();
    const std::string line = message.substr(0, message.find('\n'));
    const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
                        message.find("can't allocate memory") != std::string::npos;
    if (memory) throw Error(ErrorKind::kMemory, fmt::format("{}: out of memory: {}", device, line));
    const bool failed = dynamic_cast<const c10::AcceleratorError*>(&e) != nullptr;
    throw Error(failed ? ErrorKind::kDevice : ErrorKind::kInternal, fmt::format("{}: {}", device, line));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kMemory, fmt::format("{}: out of memory", device));
  }
}

}  // namespace hfta::engine
