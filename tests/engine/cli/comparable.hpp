#pragma once
/// What two runs of a study are compared by.

#include <nlohmann/json.hpp>

namespace hfta::testing {

/// A report (`hfta-tune report --format json`) without what may differ between equal studies: times, the process that
/// ran it, how its arrays were filled, its name.
inline nlohmann::json comparable(nlohmann::json report) {
  for (nlohmann::json& trial : report.at("trials")) trial.erase("duration_s");
  if (nlohmann::json& best = report.at("best"); !best.is_null()) best.erase("duration_s");
  for (const char* key : {"occupancy", "runner", "study"}) report.erase(key);
  return report;
}

}  // namespace hfta::testing
