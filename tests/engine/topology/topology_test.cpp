#include "engine/topology/topology.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/error.hpp"
#include "engine/topology/machines.hpp"

using namespace hfta;
using namespace hfta::engine;

namespace {

int links_of(const Topology& machine, int gpu) {
  int lanes = 0;
  for (int other = 0; other < machine.size(); ++other) lanes += other == gpu ? 0 : machine.link(gpu, other).lanes;
  return lanes;
}

}  // namespace

TEST_CASE("each GPU of a known machine has the NVLinks that it has in hardware") {
  const std::map<std::string, std::pair<int, int>> facts = {// GPUs, NVLinks of each
                                                            {"dgx-1v", {8, 6}},
                                                            {"dgx-1p", {8, 4}},
                                                            {"summit", {6, 4}},
                                                            {"torus-16", {16, 6}},
                                                            {"cube-mesh-16", {16, 7}}};
  CHECK(built_in_machines().size() == facts.size());
  for (const Topology& machine : built_in_machines()) {
    CAPTURE(machine.name());
    const auto [gpus, links] = facts.at(machine.name());
    CHECK(machine.size() == gpus);
    for (int gpu = 0; gpu < gpus; ++gpu) CHECK(links_of(machine, gpu) == links);
  }
  CHECK_THROWS_WITH(built_in_machine("dgx-1x", "--machine"), Catch::Contains("did you mean 'dgx-1"));
}

TEST_CASE("drawn machines are the same for the same seed, and have no more NVLinks than a GPU has room for") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const int devices : {2, 5, 8, 16}) {
      const Topology machine = drawn_machine(seed, devices);
      CHECK(to_table(machine) == to_table(drawn_machine(seed, devices)));
      for (int gpu = 0; gpu < devices; ++gpu) CHECK(links_of(machine, gpu) <= 6);
    }
  }
  CHECK(to_table(drawn_machine(1, 8)) != to_table(drawn_machine(2, 8)));
}

TEST_CASE("links are named as nvidia-smi names them") {
  for (const char* word : {"NV1", "NV2", "NV18", "NV64", "PIX", "PXB", "PHB", "NODE", "SYS"}) {
    const std::optional<Link> link = read_link(word);
    REQUIRE(link);
    CHECK(to_text(*link) == word);
  }
  CHECK(read_link("SOC") == Link{PathKind::kSys, 0});
  for (const char* word : {"", "X", "NV", "NV0", "NV65", "NV-1", "NV2 ", "nv2", "PIXX", "NV99999999999"}) {
    CHECK_FALSE(read_link(word));
  }
}

TEST_CASE("sets of devices") {
  CHECK(lowest(0b10110, 2) == 0b110);
  CHECK(lowest(0b10110, 0) == 0);
  CHECK(to_text(DeviceSet{0b100101}) == "0 2 5");
  CHECK(contains(0b111, 0b101));
  CHECK_FALSE(contains(0b011, 0b101));
}
