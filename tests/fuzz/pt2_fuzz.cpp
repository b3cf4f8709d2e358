// Exported models: an archive is a graph or an Error{kConfig}; a graph is compiled and runs a step, or is refused
// likewise.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/exported.hpp"
#include "tests/fusion/pt2/mutate.hpp"
#include "tests/fusion/pt2/step.hpp"

namespace test = hfta::fusion::test;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = hfta::fusion::ExportedModel::parse(std::as_bytes(std::span(data, size)), "m.pt2");
    const hfta::fusion::Graph graph = test::with_defaults(model.graph({}));
    for (const std::int64_t n : {2, 3}) {
      const std::int64_t batch = graph.fixed_batch > 0 ? std::min<std::int64_t>(graph.fixed_batch, 64) : n;
      static_cast<void>(test::run_step(graph, batch));
    }
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}

// Checksums make damaged bytes end at the zip; here it is the graph that is damaged, and a new zip put around it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  try {
    std::vector<test::Member> members = test::unpack(std::as_bytes(std::span(data, size)));
    hfta::CountedRandom random(seed, hfta::Stream::kSample, 0);
    test::mutate(members, random);
    const std::vector<std::byte> packed = test::pack(members);
    if (packed.size() > most) return size;
    std::memcpy(data, packed.data(), packed.size());
    return packed.size();
  } catch (const std::exception&) {
    return size;  // no archive that could be taken apart
  }
}
