#pragma once
/// What LibTorch's exceptions mean.

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "base/error.hpp"

namespace hfta::fusion {

enum class TorchFault {
  kMemory,  ///< Memory ran out, on whichever device.
  kDevice,  ///< The device failed while it ran.
  kCall,    ///< An op rejected its arguments.
};

[[nodiscard]] TorchFault fault_of(const c10::Error& error);
/// The message without the C++ backtrace that LibTorch appends.
[[nodiscard]] std::string first_line(const c10::Error& error);

/// Throws Error{kMemory} or Error{kDevice} that begins with `device`, unless an op rejected its arguments.
void throw_unless_call(const c10::Error& error, const std::string& device);

/// Runs `work`; where memory runs out (std::bad_alloc, too) it throws Error{kMemory}, where the device fails
/// Error{kDevice}. What an op says of its arguments stays a c10::Error: who has the graph can tell the call.
template <typename Work>
auto with_faults_told(const std::string& device, Work work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    throw_unless_call(error, device);
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::kMemory, device + ": out of memory");
  }
}

}  // namespace hfta::fusion
