// Uses NVML by its binary interface. The few declarations that are needed are here, because the library comes with the
// driver and its header does not. Names and numbers are those of NVML's reference manual.

#include "engine/topology/this_machine.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

extern "C" {
using NvmlDevice = struct NvmlDeviceOfDriver*;
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
using NvmlInit = int (*)();
using NvmlCount = int (*)(unsigned*);
using NvmlHandle = int (*)(unsigned, NvmlDevice*);
using NvmlName = int (*)(NvmlDevice, char*, unsigned);
using NvmlPciInfo = int (*)(NvmlDevice, NvmlPci*);
using NvmlLinkState = int (*)(NvmlDevice, unsigned, int*);
using NvmlLinkPci = int (*)(NvmlDevice, unsigned, NvmlPci*);
using NvmlAncestor = int (*)(NvmlDevice, NvmlDevice, int*);
}

constexpr int kOk = 0;           // NVML_SUCCESS
constexpr unsigned kLinks = 18;  // NVML_NVLINK_MAX_LINKS
constexpr unsigned kNameBytes = 96;

class Nvml {
 public:
  explicit Nvml(const std::string& library) : module_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (module_ == nullptr) {
      const char* const reason = ::dlerror();
      throw Error(ErrorKind::kDevice,
                  fmt::format("found no NVIDIA driver on this machine ({}); wanted one, or a file with the machine's "
                              "topology (--topology)",
                              printable(reason != nullptr ? reason : library)));
    }
    function("nvmlInit_v2", init);
    function("nvmlShutdown", shutdown);
    function("nvmlDeviceGetCount_v2", count);
    function("nvmlDeviceGetHandleByIndex_v2", handle);
    function("nvmlDeviceGetName", name);
    function("nvmlDeviceGetPciInfo_v3", pci);
    function("nvmlDeviceGetNvLinkState", link_state);
    function("nvmlDeviceGetNvLinkRemotePciInfo_v2", link_pci);
    function("nvmlDeviceGetTopologyCommonAncestor", ancestor);
    check(init(), "nvmlInit");
  }
  // The library stays loaded: some versions of it leave threads.
  ~Nvml() { (void)shutdown(); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  static void check(int result, const char* call) {
    if (result == kOk) return;
    throw Error(ErrorKind::kDevice, fmt::format("{}: found error {} of the NVIDIA driver", call, result));
  }

  NvmlInit init = nullptr, shutdown = nullptr;
  NvmlCount count = nullptr;
  NvmlHandle handle = nullptr;
  NvmlName name = nullptr;
  NvmlPciInfo pci = nullptr;
  NvmlLinkState link_state = nullptr;
  NvmlLinkPci link_pci = nullptr;
  NvmlAncestor ancestor = nullptr;

 private:
  template <typename Function>
  void function(const char* symbol, Function& place) {
    place = reinterpret_cast<Function>(::dlsym(module_, symbol));
    if (place != nullptr) return;
    throw Error(ErrorKind::kDevice,
                fmt::format("found an NVIDIA driver without {}, wanted one from 2019 or later", symbol));
  }

  void* module_;
};

struct Gpu {
  NvmlDevice handle = nullptr;
  std::string name, bus;
  std::map<std::string, int> lanes;  // active NVLinks by what they lead to
};

template <std::size_t size>
std::string text_of(const std::array<char, size>& bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')};
}

// "0000:07:00.0", as the kernel writes it; NVML's domain may have eight digits.
std::string bus_of(const NvmlPci& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

Gpu gpu_of(const Nvml& nvml, unsigned index) {
  Gpu gpu;
  Nvml::check(nvml.handle(index, &gpu.handle), "nvmlDeviceGetHandleByIndex");
  std::array<char, kNameBytes> name{};
  if (nvml.name(gpu.handle, name.data(), kNameBytes - 1) == kOk) gpu.name = text_of(name);
  NvmlPci pci{};
  Nvml::check(nvml.pci(gpu.handle, &pci), "nvmlDeviceGetPciInfo");
  gpu.bus = bus_of(pci);
  for (unsigned link = 0; link < kLinks; ++link) {
    int active = 0;
    NvmlPci remote{};
    if (nvml.link_state(gpu.handle, link, &active) != kOk || active == 0) continue;
    if (nvml.link_pci(gpu.handle, link, &remote) == kOk) ++gpu.lanes[bus_of(remote)];
  }
  return gpu;
}

int node_of(const Gpu& gpu, const std::filesystem::path& pci) {
  std::ifstream stream(pci / gpu.bus / "numa_node");
  int node = -1;
  return stream >> node ? node : -1;
}

PathKind path_of(int level) {  // nvmlGpuTopologyLevel_t
  if (level <= 10) return PathKind::kPix;
  if (level <= 20) return PathKind::kPxb;
  if (level <= 30) return PathKind::kPhb;
  return level <= 40 ? PathKind::kNode : PathKind::kSys;
}

// The number of NVLinks between two GPUs. Links that lead to no GPU lead to a switch, which connects them all.
int lanes_between(const Gpu& a, const Gpu& b, const std::map<std::string, int>& gpus) {
  const auto direct = a.lanes.find(b.bus);
  if (direct != a.lanes.end()) return direct->second;
  const auto to_switches = [&](const Gpu& gpu) {
    int lanes = 0;
    for (const auto& [bus, count] : gpu.lanes) lanes += gpus.contains(bus) ? 0 : count;
    return lanes;
  };
  return std::min(to_switches(a), to_switches(b));
}

Link link_between(const Nvml& nvml, const Gpu& a, const Gpu& b, const std::map<std::string, int>& gpus) {
  const int lanes = lanes_between(a, b, gpus);
  if (lanes > 0) return {PathKind::kNvlink, lanes};
  int level = 50;
  if (nvml.ancestor(a.handle, b.handle, &level) != kOk) level = 50;
  return {path_of(level), 0};
}

}  // namespace

Topology this_machine(const std::string& library, const std::filesystem::path& pci) {
  const Nvml nvml(library);
  unsigned count = 0;
  Nvml::check(nvml.count(&count), "nvmlDeviceGetCount");
  if (count < 1 || count > Topology::kMostDevices) {
    throw Error(ErrorKind::kDevice, fmt::format("found {} GPUs, wanted 1 to {}", count, Topology::kMostDevices));
  }
  std::vector<Gpu> gpus;
  std::map<std::string, int> by_bus;
  std::vector<Accelerator> devices;
  for (unsigned i = 0; i < count; ++i) {
    gpus.push_back(gpu_of(nvml, i));
    by_bus[gpus.back().bus] = static_cast<int>(i);
    devices.push_back({fmt::format("GPU{}", i), node_of(gpus.back(), pci)});
  }
  Topology machine(gpus.front().name, std::move(devices));
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      machine.connect(static_cast<int>(a), static_cast<int>(b), link_between(nvml, gpus[a], gpus[b], by_bus));
    }
  }
  return machine;
}

}  // namespace hfta::engine
