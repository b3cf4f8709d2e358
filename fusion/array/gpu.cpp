#include "fusion/gpu.hpp"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "fusion/cuda/graph_module.hpp"
#include "fusion/cuda/slot_kernels.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::string> places() {
  const std::string name = cuda::kGraphModule;
  std::vector<std::string> places;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&cuda_graphs), &self) != 0 && self.dli_fname != nullptr) {
    const std::filesystem::path folder = std::filesystem::absolute(self.dli_fname).parent_path();
    for (const auto& path : {folder / name, folder / ".." / "lib" / name}) {
      if (std::filesystem::exists(path)) places.push_back(path.string());
    }
  }
  places.push_back(name);
  return places;
}

}  // namespace

int cuda_devices() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr) return 0;
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) return 0;
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::int64_t device_memory(const at::Device& device) {
  if (device.is_cpu()) return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE);
  at::globalContext().lazyInitDevice(device.type());
  const auto [free, total] =
      c10::getDeviceAllocator(device.type())->getMemoryInfo(std::max<c10::DeviceIndex>(device.index(), 0));
  return static_cast<std::int64_t>(total);
}

CudaGraphs cuda_graphs(const at::Device& device) {
  if (!device.is_cuda()) return {};
  if (!cuda::built()) return {nullptr, "this build has no CUDA kernels"};
  if (cuda_devices() == 0) return {nullptr, "this machine has no GPU that LibTorch can use"};
  std::string why;
  for (const std::string& place : places()) {
    void* const module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      why = ::dlerror();
      continue;
    }
    auto* const make = reinterpret_cast<cuda::MakeGraphBackend*>(::dlsym(module, cuda::kMakeGraphBackend));
    if (make != nullptr) return {std::shared_ptr<GraphBackend>(make()), ""};
    why = place + " is no module of CUDA graphs";
  }
  return {nullptr, why};
}

}  // namespace hfta::fusion
