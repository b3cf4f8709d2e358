#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/places.hpp"
#include "engine/module.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "libhfta_torch.so";
constexpr const char* kRemedy =
    "; HFTA_TORCH_DIR=<...>/site-packages/torch names the Python package torch 2.11.0 that is to be used";

Error failed(const fs::path& library) {
  const char* reason = dlerror();
  return {ErrorKind::kDevice, fmt::format("{}: cannot load: {}{}", library.string(),
                                          printable(reason != nullptr ? reason : "unknown reason"), kRemedy)};
}

// Loads libraries from HFTA_TORCH_DIR, if that is set. They then satisfy the module's need for ones of these names.
void preload_torch() {
  const char* given = std::getenv("HFTA_TORCH_DIR");
  if (given == nullptr || *given == '\0') return;
  for (const char* name : {"libc10.so", "libtorch_cpu.so"}) {
    const fs::path library = fs::path(given) / "lib" / name;
    if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) throw failed(library);
  }
}

fs::path find_module() {
  const fs::path beside = program_folder() / kModule;
  const fs::path installed = program_folder().parent_path() / "lib" / kModule;
  std::error_code ignored;
  for (const fs::path& place : {beside, installed}) {
    if (fs::exists(place, ignored)) return place;
  }
  throw Error(ErrorKind::kDevice,
              fmt::format("{}: found it neither in {} nor in {}; this build cannot train (it was configured with "
                          "HFTA_WITH_TORCH=OFF, or the file was not installed)",
                          kModule, beside.parent_path().string(), installed.parent_path().string()));
}

// Threads of OpenMP, which LibTorch brings, look for work for milliseconds when a call is over, and keep others off
// their processors. Tens of microseconds bridge the gaps between ops as well. LIBXSMM asks for threads that are bound
// to processors where nobody has said anything of it: the processes that this one starts would all be bound to the
// first.
void set_up_openmp() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
  ::setenv("OMP_PROC_BIND", "false", 0);
}

const TorchModule* load() {
  const fs::path module = find_module();
  set_up_openmp();
  preload_torch();
  void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);  // never closed: torch does not survive that
  if (handle == nullptr) throw failed(module);
  using Entry = const TorchModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "hfta_torch_module"));
  if (entry == nullptr) throw failed(module);
  return entry();
}

}  // namespace

const TorchModule& load_torch_module() {
  static const TorchModule* const module = load();
  return *module;
}

}  // namespace hfta::engine
