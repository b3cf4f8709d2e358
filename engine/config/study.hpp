#pragma once
/// The part of a config that all trials share: method, metric, search space, packing. Internal to engine/config.

#include <nlohmann/json_fwd.hpp>

#include "engine/config.hpp"
#include "engine/config/node.hpp"
#include "engine/config/reader.hpp"

namespace hfta::engine::configuration {

/// The map `parameters`. Throws Error{kConfig} with the place of what no distribution can be made of.
[[nodiscard]] trials::Space read_space(Reader& root, const std::string& file, nlohmann::json& record);

/// `when` and `otherwise` of the parameters, and constraints. Reads the space first.
void read_dependences(Reader& root, const std::string& file, nlohmann::json& record, StudyConfig& config);
/// Throws if the method cannot search a space whose parameters depend on each other so.
void check_dependences(const Reader& root, const StudyConfig& config);

/// early_stopping, and W&B's early_terminate. Reads the method first.
void read_early_stopping(Reader& root, const std::string& file, StudyConfig& config);

/// points and warm_start. Reads the space, the method and the constraints first.
void read_beginnings(Reader& root, StudyConfig& config);

/// run_cap and budget. Reads the method and early stopping first.
void read_budget(Reader& root, StudyConfig& config);

/// An entry of `metric`, which is a map, or a list of them.
struct ObjectiveNode {
  std::string path;  ///< "metric"; of several, "metric.0"
  Node node;
};
[[nodiscard]] std::vector<ObjectiveNode> objective_nodes(const Node& metric);
/// metric.
void read_objectives(Reader& root, const std::string& file, StudyConfig& config);
/// Throws if a study of several objectives has what needs one order of its trials. Reads all other keys first.
void check_several(const Reader& root, const StudyConfig& config);
/// Whether goals are what the metrics suggest; a warning where they are not. Throws for a formula without a goal.
void check_goals(const Node& root, const std::string& file, const TaskSpec& task, StudyConfig& config);

/// Everything else but the task. `config.folder`, `config.file` and `config.space` are set already.
void read_study(Reader& root, const std::string& file, StudyConfig& config);

}  // namespace hfta::engine::configuration
