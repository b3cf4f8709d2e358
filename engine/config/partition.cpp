// StudyConfig::partition, in a file of its own: libhfta_torch.so needs it, and nothing else of the YAML readers.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "engine/config.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

std::string StudyConfig::partition(const trials::Params& params) const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : splitting(params)) parts.push_back(name + "=" + trials::to_text(value));
  return join(parts);
}

trials::Params StudyConfig::splitting(const trials::Params& params) const {
  trials::Params those;
  std::copy_if(params.begin(), params.end(), std::back_inserter(those),
               [this](const auto& one) { return shape_changing.contains(one.first); });
  return those;
}

trials::Space StudyConfig::searched() const { return {space.begin(), space.end() - std::ssize(repetitions.axes())}; }

}  // namespace hfta::engine
