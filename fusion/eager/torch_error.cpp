#include "fusion/eager/torch_error.hpp"

#include <algorithm>
#include <array>

namespace hfta::fusion {

TorchFault fault_of(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  const auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr || says("can't allocate memory")) {
    return TorchFault::kMemory;
  }
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

}  // namespace hfta::fusion
