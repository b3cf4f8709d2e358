// A machine's topology: a text is a machine, in either form, or an Error{kConfig}. One that is read is written as YAML
// that reads back. A list of CPUs is ascending.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/topology/numa.hpp"
#include "engine/topology/readers.hpp"

namespace {

using hfta::engine::Topology;

void try_read(Topology (*read)(std::string_view, const std::string&), const std::string& text) {
  try {
    const std::string yaml = to_yaml(read(text, "fuzzed"));
    if (to_yaml(hfta::engine::read_topology_yaml(yaml, "again")) != yaml) std::abort();
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_read(hfta::engine::read_smi_text, text);
  try_read(hfta::engine::read_topology_yaml, text);
  const std::vector<int> cpus = hfta::engine::read_cpu_list(text);
  if (std::adjacent_find(cpus.begin(), cpus.end(), std::greater_equal<>()) != cpus.end()) std::abort();
  return 0;
}
