#include "storage/sqlite/objectives.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/json.hpp"
#include "storage/optuna_encoding.hpp"

namespace hfta::storage {
namespace {

trials::Goal goal_from(std::string_view direction) {
  if (direction == "MAXIMIZE") return trials::Goal::kMaximize;
  if (direction == "MINIMIZE" || direction.empty() || direction == "NOT_SET") return trials::Goal::kMinimize;
  throw Error(ErrorKind::kStorage,
              fmt::format("direction: found '{}', wanted MINIMIZE or MAXIMIZE", printable(direction)));
}

std::vector<std::string> read_directions(Connection& connection, std::int64_t study_id) {
  std::vector<std::string> directions;
  Query query = connection.query("SELECT direction FROM study_directions WHERE study_id = ?1 ORDER BY objective");
  query.bind(study_id);
  while (query.next()) directions.push_back(query.text(0));
  return directions;
}

// An attribute that is no list, or an entry that is no word, names nothing.
void name_as_optuna(Connection& connection, std::int64_t study_id, trials::Objectives& objectives) {
  Query query = connection.query(
      "SELECT value_json FROM study_system_attributes WHERE study_id = ?1 AND \"key\" = 'study:metric_names'");
  if (!query.bind(study_id).next()) return;
  const nlohmann::json names = parse(query.view(0), "study:metric_names");
  for (std::size_t i = 0; i < objectives.size() && names.is_array() && i < names.size(); ++i) {
    if (names[i].is_string()) objectives[i].metric = names[i].get<std::string>();
  }
}

}  // namespace

const char* direction_of(trials::Goal goal) { return goal == trials::Goal::kMinimize ? "MINIMIZE" : "MAXIMIZE"; }

trials::Objectives read_objectives(Connection& connection, std::int64_t study_id) {
  trials::Objectives objectives;
  for (const std::string& direction : read_directions(connection, study_id)) {
    objectives.push_back({unnamed_metric(objectives.size()), goal_from(direction)});
  }
  if (objectives.empty()) objectives.push_back({unnamed_metric(0), trials::Goal::kMinimize});
  name_as_optuna(connection, study_id, objectives);
  return objectives;
}

std::string joined_directions(Connection& connection, std::int64_t study_id) {
  return join(read_directions(connection, study_id), ",");
}

std::string metrics_column(const std::vector<std::string>& metrics) {
  return metrics.size() == 1 ? metrics.front() : dump(metrics);
}

void name_metrics(std::string_view column, trials::Objectives& objectives) {
  if (objectives.size() == 1) {
    objectives.front().metric = column;
    return;
  }
  const nlohmann::json names = parse(column, "metric");
  if (!names.is_array() || names.size() != objectives.size()) {
    throw Error(ErrorKind::kStorage,
                fmt::format("metric: found '{}', wanted a list of {} names", printable(column), objectives.size()));
  }
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (!names[i].is_string()) throw Error(ErrorKind::kStorage, "metric: found another thing than a name in its list");
    objectives[i].metric = names[i].get<std::string>();
  }
}

}  // namespace hfta::storage
