// In a file of its own: libhfta_torch.so needs it, and nothing else of what reads YAML.
#include <iterator>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "engine/config.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

std::string StudyConfig::partition(const trials::Params& params) const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : params) {
    if (shape_changing.contains(name)) parts.push_back(name + "=" + trials::to_text(value));
  }
  return join(parts);
}

trials::Space StudyConfig::searched() const { return {space.begin(), space.end() - std::ssize(repetitions.axes())}; }

}  // namespace hfta::engine
