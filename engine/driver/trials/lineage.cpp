#include "engine/driver/trials/lineage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "base/error.hpp"

namespace hfta::engine {

Identity identity_of(const std::vector<trials::Trial>& trials, int draw, int trained) {
  const trials::Trial* trial = &trials.at(static_cast<std::size_t>(draw));
  // A copy has nothing of what its source became later, so the epochs that count grow fewer at every step.
  for (int before = std::numeric_limits<int>::max();;) {
    const auto copy = std::find_if(trial->copies.rbegin(), trial->copies.rend(),
                                   [&](const trials::Copy& one) { return one.epoch < before; });
    if (copy == trial->copies.rend()) return {trial->number, &trial->params};
    if (copy->epoch <= trained) return {trial->number, &copy->params};
    const auto source = std::find_if(trials.begin(), trials.end(),
                                     [&](const trials::Trial& one) { return one.number == copy->source; });
    if (source == trials.end()) {
      throw Error(ErrorKind::kStorage, fmt::format("trial {}: it went on from a copy of trial {}, which the study "
                                                   "does not have",
                                                   trial->number, copy->source));
    }
    before = copy->epoch;
    trial = &*source;
  }
}

}  // namespace hfta::engine
