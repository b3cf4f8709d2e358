#include "engine/driver/measure.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {

Measurement measure(const std::map<std::string, double>& metrics, const std::string& metric, int epoch) {
  const auto found = metrics.find(metric);
  if (found == metrics.end()) {
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    throw Error(ErrorKind::kConfig, fmt::format("metric: name: found '{}', wanted one of the metrics that are taken{}",
                                                printable(metric), suggestion(metric, names)));
  }
  Measurement measured{found->second, {}};
  // train_loss first: where it is not finite, the rest only follows from it.
  for (const std::string& name : {std::string("train_loss"), metric}) {
    const auto entry = metrics.find(name);
    if (entry == metrics.end() || std::isfinite(entry->second)) continue;
    measured.failure = fmt::format("{} is {} at epoch {}", name, shortest(entry->second), epoch);
    if (epoch > 1) measured.failure += fmt::format("; finite until epoch {}", epoch - 1);
    break;
  }
  return measured;
}

}  // namespace hfta::engine
