// Clusters and graphs: a text is one of them, or an Error{kConfig}; what is read can be planned.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "engine/planner/readers.hpp"
#include "engine/planner/search.hpp"

namespace {

using namespace hfta::engine::planner;

template <typename Read, typename Use>
void try_read(const Read& read, const Use& use) {
  try {
    use(read());
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
}

void plan(const Graph& graph, const Cluster& cluster) {
  if (graph.size() > 8 || graph.slots > 64) return;  // what is slow is no finding
  const Problem problem(graph, cluster, groups_of(graph, 3));
  const Found found = search(problem, {0, 1});
  if (std::isnan(found.outcome.seconds) || found.outcome.seconds < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_read([&] { return read_graph(text, "fuzzed"); }, [](const Graph& graph) { plan(graph, paper_cluster()); });
  Graph two;
  two.samples = 3;
  two.slots = 2;
  two.ops = {{"a", {}, 1e9, 1e6, 1e5}, {"b", {0}, 1e9, 1e6, 1e5}};
  try_read([&] { return read_cluster(text, "fuzzed"); }, [&](const Cluster& cluster) { plan(two, cluster); });
  return 0;
}
