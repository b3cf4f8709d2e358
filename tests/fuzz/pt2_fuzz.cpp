// Exported models: an archive is a graph or an Error{kConfig}, whatever is asked of it; a graph is compiled and runs a
// step, or is refused likewise.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/exported.hpp"
#include "tests/fusion/pt2/mutate.hpp"
#include "tests/fusion/pt2/step.hpp"

extern "C" __attribute__((weak)) std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace hfta;
using namespace hfta::fusion;

void attempt(const std::function<void()>& reading) {
  try {
    reading();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
  }
}

// `odd`: one of two ways to run it, as either takes most of the time.
void use(const ExportedModel& model, bool odd) {
  attempt([&] {
    ImportOptions options;
    options.dtype = odd ? DType::kFloat64 : DType::kFloat32;
    const Graph graph = test::with_defaults(model.graph(options));
    const std::int64_t batch = graph.fixed_batch > 0 ? std::min<std::int64_t>(graph.fixed_batch, 64) : odd ? 3 : 2;
    static_cast<void>(test::run_step(graph, batch, options.dtype));
  });
  attempt([&] {
    ImportOptions options;
    options.fresh = true;
    static_cast<void>(model.graph(options));
  });
  attempt([&] {
    ImportOptions options;
    options.freeze = {"*"};
    options.bind = {{"*.p", 0.25, "s.yaml:1"}};
    options.jitter = 0.1;
    static_cast<void>(model.graph(options));
  });
  attempt([&] { static_cast<void>(model.graph({}, model)); });
}

// Text of a member, with bytes of it changed.
void change_bytes(std::string& text) {
  constexpr std::size_t kGrowth = 64;
  const std::size_t size = text.size();
  text.resize(size + kGrowth);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attempt([&] { use(ExportedModel::parse(std::as_bytes(std::span(data, size)), "m.pt2"), size % 2 == 1); });
  return 0;
}

// Checksums make damaged bytes end at the zip; here it is mostly the graph that is damaged, sometimes the bytes of a
// member, and a new zip put around it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  try {
    CountedRandom random(seed, Stream::kSample, 0);
    const std::uint64_t way = random.below(16);
    if (way == 0) return LLVMFuzzerMutate(data, size, most);
    std::vector<test::Member> members = test::unpack(std::as_bytes(std::span(data, size)));
    if (way <= 3 && !members.empty()) {
      change_bytes(members[random.below(members.size())].bytes);
    } else {
      test::mutate(members, random);
    }
    const std::vector<std::byte> packed = test::pack(members);
    if (packed.size() > most) return size;
    std::memcpy(data, packed.data(), packed.size());
    return packed.size();
  } catch (const std::exception&) {
    return LLVMFuzzerMutate(data, size, most);  // no archive that could be taken apart
  }
}
