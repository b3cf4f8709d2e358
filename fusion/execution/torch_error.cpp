#include "fusion/execution/torch_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hfta::fusion {

TorchFault fault_of(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  const auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  // Only LibTorch's own allocators have a type for it: CUDA itself and its libraries say it in words.
  constexpr std::array<const char*, 5> kMemory = {"can't allocate memory", "CUDA error: out of memory",
                                                  "CUBLAS_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED",
                                                  "CUDNN_STATUS_ALLOC_FAILED"};
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
      std::any_of(kMemory.begin(), kMemory.end(), says)) {
    return TorchFault::kMemory;
  }
  constexpr std::array<const char*, 4> kRefused = {"CUBLAS_STATUS_NOT_SUPPORTED", "CUBLAS_STATUS_INVALID_VALUE",
                                                   "CUDNN_STATUS_NOT_SUPPORTED", "CUDNN_STATUS_BAD_PARAM"};
  if (std::any_of(kRefused.begin(), kRefused.end(), says)) return TorchFault::kCall;
  // The libraries behind a GPU's ops have no exceptions of their own.
  constexpr std::array<const char*, 4> kLibraries = {"CUDA error", "CUBLAS_STATUS", "CUSOLVER_STATUS", "cuDNN error"};
  const bool device = dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr ||
                      std::any_of(kLibraries.begin(), kLibraries.end(), says);
  return device ? TorchFault::kDevice : TorchFault::kCall;
}

std::string first_line(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  return message.substr(0, message.find('\n'));
}

void throw_unless_call(const c10::Error& error, const std::string& device) {
  const TorchFault fault = fault_of(error);
  if (fault == TorchFault::kMemory) {
    throw Error(ErrorKind::kMemory, fmt::format("{}: out of memory: {}", device, first_line(error)));
  }
  if (fault == TorchFault::kDevice) throw Error(ErrorKind::kDevice, fmt::format("{}: {}", device, first_line(error)));
}

}  // namespace hfta::fusion
