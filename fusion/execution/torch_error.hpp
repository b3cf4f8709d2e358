#pragma once
/// What LibTorch's exceptions mean.

#include <c10/util/Exception.h>

#include <string>

namespace hfta::fusion {

enum class TorchFault {
  kMemory,  ///< Memory ran out, on whichever device.
  kDevice,  ///< The device failed while it ran.
  kCall,    ///< An op rejected its arguments.
};

[[nodiscard]] TorchFault fault_of(const c10::Error& error);
/// The message without the C++ backtrace that LibTorch appends.
[[nodiscard]] std::string first_line(const c10::Error& error);

}  // namespace hfta::fusion
