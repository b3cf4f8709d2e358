#pragma once
/// A study's objectives in Optuna's tables and in ours. Private to storage/sqlite/.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/sqlite/connection.hpp"
#include "trials/trial.hpp"

namespace hfta::storage {

/// "MINIMIZE" or "MAXIMIZE".
[[nodiscard]] const char* direction_of(trials::Goal goal);

/// Reads Optuna's tables: its directions, and its names of metrics. Optuna calls a metric "value" where no name
/// was set; of several, we call the others "value_1", "value_2", ... At least one. Throws Error{kStorage} for another
/// direction than Optuna's.
[[nodiscard]] trials::Objectives read_objectives(Connection& connection, std::int64_t study_id);

/// "MAXIMIZE,MINIMIZE": what a study's digest covers.
[[nodiscard]] std::string joined_directions(Connection& connection, std::int64_t study_id);

/// hfta_studies.metric: the metric's name; of several, a JSON list of their names.
[[nodiscard]] std::string metrics_column(const std::vector<std::string>& metrics);
/// Takes the names from such a column. Throws Error{kStorage} unless it has one per objective.
void name_metrics(std::string_view column, trials::Objectives& objectives);

}  // namespace hfta::storage
