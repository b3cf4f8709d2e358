// What the driver's management library says, with one that says what the test wants.

#include "engine/topology/this_machine.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "base/temporary_folder.hpp"

using namespace hfta;
using namespace hfta::engine;

namespace {

Topology of(const char* machine, const std::filesystem::path& pci = "/nowhere") {
  ::setenv("HFTA_FAKE_NVML_MACHINE", machine, 1);
  return this_machine(HFTA_FAKE_NVML, pci);
}

}  // namespace

TEST_CASE("GPUs with NVLinks between pairs, and the NUMA nodes that the kernel shows") {
  const TemporaryFolder folder("hfta-topology");
  for (int i = 0; i < 4; ++i) {
    const std::filesystem::path device = folder.path() / ("0000:1" + std::to_string(i) + ":00.0");
    std::filesystem::create_directories(device);
    std::ofstream(device / "numa_node") << i / 2 << "\n";
  }
  const Topology machine = of("pairs", folder.path());
  REQUIRE(machine.size() == 4);
  CHECK(machine.name() == "Fake GPU");
  CHECK(machine.link(0, 1) == Link{PathKind::kNvlink, 2});
  CHECK(machine.link(3, 2) == Link{PathKind::kNvlink, 2});
  CHECK(machine.link(1, 2) == Link{PathKind::kSys, 0});
  CHECK(machine.device(1).node == 0);
  CHECK(machine.device(2).node == 1);
}

TEST_CASE("NVLinks to a switch lead to every GPU") {
  const Topology machine = of("switch");
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < a; ++b) CHECK(machine.link(a, b) == Link{PathKind::kNvlink, 3});
  }
  CHECK(machine.device(0).node == -1);
}

TEST_CASE("a machine without GPUs, or without a driver, is an error of devices that says so") {
  for (const bool driver : {true, false}) {
    try {
      if (driver) {
        (void)of("none");
      } else {
        (void)this_machine("libhfta-no-such-library.so");
      }
      FAIL("found a GPU");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kDevice);
      CHECK_THAT(error.what(), Catch::Contains(driver ? "found 0 GPUs" : "found no NVIDIA driver"));
    }
  }
}
