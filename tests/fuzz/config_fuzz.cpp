// Configs: a text is a config, whose trials at the edges of the space are
// tasks, or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "engine/config.hpp"
#include "search/space.hpp"

namespace {

hfta::trials::Params corner(const hfta::engine::StudyConfig& config, bool high) {
  hfta::trials::Params params;
  for (const auto& parameter : config.space) {
    const auto values = hfta::search::extremes(parameter.distribution);
    params.emplace_back(parameter.name, high ? values.back() : values.front());
  }
  return params;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto config = hfta::engine::parse_config(text, "/nowhere/s.yaml", {});
    for (const bool high : {false, true}) {
      static_cast<void>(config.task(corner(config, high)));
      static_cast<void>(config.partition(corner(config, high)));
    }
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
