// The functions of NVML that this_machine() calls, for a machine of four GPUs. HFTA_FAKE_NVML_MACHINE says which:
// "pairs": GPU 0 and 1, 2 and 3 share two NVLinks each; "switch": each GPU has three NVLinks to a switch; "none": no
// GPU.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

constexpr int kInvalid = 2;  // NVML_ERROR_INVALID_ARGUMENT

std::string machine() {
  const char* const name = std::getenv("HFTA_FAKE_NVML_MACHINE");
  return name != nullptr ? name : "pairs";
}

unsigned index_of(const void* device) { return static_cast<unsigned>(reinterpret_cast<std::size_t>(device)) - 1; }

void write(Pci& pci, unsigned bus) {
  pci = {};
  pci.domain = 0;
  pci.bus = bus;
}

unsigned bus_of(unsigned gpu) { return 0x10 + gpu; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = machine() == "none" ? 0 : 4;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::size_t>(index) + 1);
  return 0;
}

int nvmlDeviceGetName(void* /*device*/, char* name, unsigned length) {
  std::snprintf(name, length, "Fake GPU");
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  write(*pci, bus_of(index_of(device)));
  return 0;
}

int nvmlDeviceGetNvLinkState(void* /*device*/, unsigned link, int* active) {
  if (link >= 6) return kInvalid;
  *active = link < (machine() == "switch" ? 3 : 2) ? 1 : 0;
  return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, Pci* pci) {
  write(*pci, machine() == "switch" ? 0x80 + link : bus_of(index_of(device) ^ 1U));
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level) {
  *level = index_of(a) / 2 == index_of(b) / 2 ? 20 : 50;
  return 0;
}
}
