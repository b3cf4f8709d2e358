// Search spaces: the text of `parameters:` is a space, or an Error{kConfig}.
// Every value that a space gives is one that it admits, whatever its numbers
// are.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "engine/config.hpp"
#include "search/completion.hpp"
#include "search/sampler.hpp"
#include "search/space.hpp"

namespace {

constexpr const char* kBefore =
    "study: s\nmethod: random\nrun_cap: 4\nmetric: {name: val_loss, goal: "
    "minimize}\nmodel: {layers: [flatten, "
    "{linear: "
    "[64, 10]}]}\ndata: {name: digits, batch_size: 64, validation: "
    "0.2}\ntrain: {epochs: 1, loss: cross_entropy, "
    "optimizer: "
    "{name: sgd}}\nparameters:\n";

void require(bool holds) {
  if (!holds) std::abort();
}

void try_out(const hfta::trials::Distribution& distribution) {
  for (std::uint64_t draw = 0; draw < 8; ++draw) {
    hfta::CountedRandom random(1, hfta::Stream::kSample, draw);
    const auto value = hfta::search::sample(distribution, random);
    const auto admitted = hfta::search::admit(distribution, value);
    require(admitted.has_value() && hfta::search::admit(distribution, *admitted) == admitted);
  }
  require(!hfta::search::extremes(distribution).empty());
  if (const auto values = hfta::search::enumerate(distribution)) {
    require(!values->empty() && hfta::search::admit(distribution, values->front()).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string text = kBefore + std::string(reinterpret_cast<const char*>(data), size);
    const auto config = hfta::engine::parse_config(text, "/nowhere/s.yaml", {});
    for (const auto& parameter : config.space) try_out(parameter.distribution);
    require(hfta::search::make_random(config.space, 1)->ask(0, 3, {}).size() == 3);
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
