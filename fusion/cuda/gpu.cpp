#include "fusion/gpu.hpp"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/limits.hpp"
#include "fusion/cuda/graph_module.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

// Folder of the library that has this function; empty if the loader does not say. Modules are loaded by whole paths:
// the loader may look for a bare name in places that the environment names.
template <typename Function>
fs::path folder_of_library(Function* function) {
  Dl_info found{};
  const bool known = ::dladdr(reinterpret_cast<const void*>(function), &found) != 0 && found.dli_fname != nullptr;
  return known ? fs::absolute(found.dli_fname).parent_path() : fs::path();
}

std::vector<std::string> places() {
  const std::string name = cuda::kGraphModule;
  const fs::path folder = folder_of_library(&cuda_graphs);
  std::vector<std::string> places;
  for (const fs::path& path : {folder / name, folder / ".." / "lib" / name}) {
    if (!folder.empty() && fs::exists(path)) places.push_back(path.string());
  }
  return places;
}

}  // namespace

int cuda_devices() {
  // The driver's library is wherever the system's loader has it; LibTorch's lie together.
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) return 0;
  const fs::path torch = folder_of_library(&at::globalContext) / "libtorch_cuda.so";
  if (!torch.is_absolute() || ::dlopen(torch.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return 0;
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::int64_t device_memory(const at::Device& device) {
  if (device.is_cpu()) return static_cast<std::int64_t>(usable_memory());
  at::globalContext().lazyInitDevice(device.type());
  const auto [free, total] =
      c10::getDeviceAllocator(device.type())->getMemoryInfo(std::max<c10::DeviceIndex>(device.index(), 0));
  return static_cast<std::int64_t>(total);
}

CudaGraphs cuda_graphs(const at::Device& device) {
  if (!device.is_cuda()) return {};
  if (!cuda::built()) return {nullptr, "this build has no CUDA kernels"};
  if (cuda_devices() == 0) return {nullptr, "this machine has no GPU that LibTorch can use"};
  std::string why = std::string("found no ") + cuda::kGraphModule + " beside this program's module";
  for (const std::string& place : places()) {
    void* const module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      why = ::dlerror();
      continue;
    }
    auto* const make = reinterpret_cast<cuda::MakeStepGraphBackend*>(::dlsym(module, cuda::kMakeStepGraphBackend));
    if (make != nullptr) return {std::shared_ptr<StepGraphBackend>(make()), ""};
    why = place + " is no module of CUDA graphs";
  }
  return {nullptr, why};
}

}  // namespace hfta::fusion
