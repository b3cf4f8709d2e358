// Topologies from files: whole ones, and what is said of others.

#include "engine/topology/readers.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.hpp"
#include "base/temporary_folder.hpp"
#include "engine/topology/machines.hpp"

using namespace hfta;
using namespace hfta::engine;

namespace {

// As a driver of 2023 writes it, underlined header, network card and legend included.
const std::string kSmi =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV2\tSYS\tPIX\t0-19,40-59\t0\t\tN/A\n"
    "GPU1\tNV2\t X \tNODE\tPHB\t0-19,40-59\t0\t\tN/A\n"
    "GPU2\tSYS\tNODE\t X \tSYS\t20-39,60-79\t1\t\tN/A\n"
    "NIC0\tPIX\tPHB\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "\n"
    "NIC Legend:\n\n"
    "  NIC0: mlx5_0\n";

// Without the column that drivers of 2019 did not have.
const std::string kOldSmi =
    "\tGPU0\tGPU1\tCPU Affinity\n"
    "GPU0\t X \tSOC\t0-7\n"
    "GPU1\tSOC\t X \t0-7\n";

std::string spaced(std::string text) {
  for (std::size_t at = text.find('\t'); at != std::string::npos; at = text.find('\t')) text.replace(at, 1, "    ");
  return text;
}

template <typename Read>
std::string said(const Read& read) {
  try {
    (void)read();
    return "nothing";
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
}

void check_smi(const Topology& machine) {
  REQUIRE(machine.size() == 3);
  CHECK(machine.link(0, 1) == Link{PathKind::kNvlink, 2});
  CHECK(machine.link(2, 0) == Link{PathKind::kSys, 0});
  CHECK(machine.link(2, 1) == Link{PathKind::kNode, 0});
  CHECK(machine.device(0).node == 0);
  CHECK(machine.device(2).node == 1);
  CHECK(machine.device(2).name == "GPU2");
}

}  // namespace

TEST_CASE("what nvidia-smi prints is read, with its tabs or with spaces") {
  check_smi(read_smi_text(kSmi, "topo.txt"));
  check_smi(read_smi_text(spaced(kSmi), "topo.txt"));
  const Topology old = read_smi_text(kOldSmi, "topo.txt");
  CHECK(old.link(0, 1) == Link{PathKind::kSys, 0});
  CHECK(old.device(1).node == -1);
  CHECK(read_smi_text("\tGPU0\nGPU0\t X\n", "topo.txt").size() == 1);
}

TEST_CASE("what nvidia-smi never prints is refused, with the line") {
  std::string many = "\t", row;
  for (int i = 0; i < 17; ++i) many += fmt::format("GPU{}\t", i);
  for (int i = 0; i < 17; ++i) row += fmt::format("GPU{}\t X \n", i);
  const std::pair<std::string, const char*> cases[] = {
      {"", "t:1: found no GPU"},
      {"GPUs are fine\n", "t:1: found no GPU"},
      {"\tGPU0\tGPU1\nGPU0\t X \tNV1\n", "t:1: found 2 GPUs and 1 rows"},
      {"\tGPU0\tGPU1\nGPU1\t X \tNV1\nGPU0\tNV1\t X\n", "t:2: found GPU1, wanted GPU0"},
      {"\tGPU0\tGPU1\nGPU0\t X\nGPU1\tNV1\t X\n", "t:2: found 1 links, wanted 2"},
      {"\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV2\t X\n", "t:3: GPU1 and GPU0: found NV2 in one direction and NV1"},
      {"\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNVX\t X\n", "t:3: found 'NVX', wanted NV1 to NV64"},
      {"\tGPU0\tGPU1\nGPU0\t X \tX\nGPU1\tX\t X\n", "found 'X', wanted NV1"},
      {"\tGPU0\tGPU0\nGPU0\t X \tNV1\nGPU0\tNV1\t X\n", "t:1: found a GPU twice, wanted each once"},
      {"\tGPU123456\nGPU123456\t X\n", "t:1: found no GPU"},
      {many + "\n" + row, "t:1: found 17 GPUs, wanted at most 16"},
  };
  for (const auto& [text, message] : cases) {
    CAPTURE(text);
    CHECK_THAT(said([&, text = text] { return read_smi_text(text, "t"); }), Catch::Contains(message));
  }
}

TEST_CASE("YAML says what differs from PCIe within and between nodes") {
  const Topology machine = read_topology_yaml(
      "name: two nodes\ndevices: [a, b, c]\nnodes: [0, 0, 1]\nnvlink: 50\npcie: 12.5\nlinks:\n  - [0, 2, NV4]\n",
      "m.yaml");
  CHECK(machine.name() == "two nodes");
  CHECK(machine.device(2).name == "c");
  CHECK(machine.link(0, 1) == Link{PathKind::kPhb, 0});
  CHECK(machine.link(1, 2) == Link{PathKind::kSys, 0});
  CHECK(machine.bandwidth(2, 0) == 200);
  CHECK(machine.bandwidth(1, 0) == 12.5);
  CHECK(read_topology_yaml("devices: 4\n", "m.yaml").size() == 4);
}

TEST_CASE("YAML that says anything else is refused, with line and key") {
  const std::pair<const char*, const char*> cases[] = {
      {"", "wanted devices: ... and links: ..."},
      {"[1]", "wanted devices: ... and links: ..."},
      {"nodes: [0]\n", "devices: found"},
      {"devices: 0\n", "m:1: devices: found 0, wanted an integer from 1 to 16"},
      {"devices: 17\n", "m:1: devices: found 17"},
      {"devices: []\n", "m:1: devices: found an empty list, wanted their names, or how many"},
      {"devices: [[a]]\n", "devices: found a list, wanted a name"},
      {"devices: [a, b, a]\n", "devices: found 'a', wanted each name once"},
      {"name: [a]\ndevices: 2\n", "m:1: name: found a list, wanted a name"},
      {"devices: {a: b}\n", "devices: found a map"},
      {"devices: 2\nnodes: [0]\n", "m:2: nodes: found a list, wanted 2, one for each device"},
      {"devices: 2\nnodes: [0, x]\n", "m:2: nodes: found 'x', wanted an integer from -1 to 1024"},
      {"devices: 2\nlinks: NV2\n", "m:2: links: found 'NV2', wanted a list of [device, device, NV2]"},
      {"devices: 2\nlinks: [[0, 1]]\n", "m:2: links: found a list, wanted [device, device, NV2]"},
      {"devices: 2\nlinks: [[0, 2, NV2]]\n", "links: found 2, wanted an integer from 0 to 1"},
      {"devices: 2\nlinks: [[0, 0, NV2]]\n", "links: found 'NV2', wanted [device, device, NV2]"},
      {"devices: 2\nlinks: [[0, 1, 2]]\n", "links: found 2, wanted [device, device, NV2]"},
      {"devices: 2\nlinks: [[0, 1, NV0]]\n", "links: found 'NV0'"},
      {"devices: 2\nlinks: [[0, 1, NV2], [1, 0, NV4]]\n", "links: found a list, wanted each pair of devices once"},
      {"devices: 2\nnvlink: 0\n", "m:2: nvlink: found 0, wanted GB/s, 1e-06 to 1e+06"},
      {"devices: 2\nnvlink: fast\n", "m:2: nvlink: found 'fast', wanted GB/s"},
      {"devices: 2\npcie: .nan\n", "m:2: pcie: found"},
      {"devices: 2\nnvlink: 5\n", "m:2: nvlink: found 5, wanted nvlink of at least pcie's bandwidth"},
      {"devices: 2\npcie: 50\n", "m:2: pcie: found 50, wanted nvlink of at least pcie's bandwidth"},
      {"devices: 2\nlink: []\n", "m:2: link: unknown key; did you mean 'links'?"},
  };
  for (const auto& [text, message] : cases) {
    CAPTURE(text);
    CHECK_THAT(said([&, text = text] { return read_topology_yaml(text, "m"); }), Catch::Contains(message));
  }
}

TEST_CASE("a topology written as YAML reads back") {
  std::vector<Topology> machines = built_in_machines();
  machines.push_back(drawn_machine(3, 16));
  machines.emplace_back("it's", std::vector<Accelerator>{{"a 'b'", 0}, {"", -1}});
  machines.emplace_back("\\\\ \n\x7f\xc3", std::vector<Accelerator>{{std::string(200, '\\'), 0}, {"\t: #", 0}});
  machines.push_back(read_smi_text(kSmi, "t"));
  for (const Topology& machine : machines) {
    CAPTURE(machine.name());
    const Topology again = read_topology_yaml(to_yaml(machine), "m.yaml");
    CHECK(to_table(again) == to_table(machine));
    CHECK(to_yaml(again) == to_yaml(machine));
  }
}

TEST_CASE("a file is read by its name's ending, and one that is absent is an error") {
  const TemporaryFolder folder("hfta-topology");
  std::ofstream(folder.path() / "m.yml") << "devices: 2\n";
  std::ofstream(folder.path() / "m.txt") << kSmi;
  CHECK(read_topology(folder.path() / "m.yml").size() == 2);
  CHECK(read_topology(folder.path() / "m.txt").size() == 3);
  CHECK_THAT(said([&] { return read_topology(folder.path() / "none.txt"); }), Catch::Contains("cannot be read"));
  CHECK_THAT(said([&] { return read_topology(folder.path()); }), Catch::Contains("cannot be read"));
}
