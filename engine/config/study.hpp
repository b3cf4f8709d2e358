#pragma once
/// The part of a config that all trials share: method, metric, search space, packing. Internal to engine/config.

#include <nlohmann/json_fwd.hpp>

#include "engine/config.hpp"
#include "engine/config/node.hpp"
#include "engine/config/reader.hpp"
#include "engine/config/references.hpp"

namespace hfta::engine::configuration {

/// Reads the map `parameters`. Throws Error{kConfig}, with the place, if no distribution can be made of an entry.
[[nodiscard]] trials::Space read_space(Reader& root, const std::string& file, nlohmann::json& record);

/// Reads `when` and `otherwise` of the parameters, and constraints. REQUIRES that the space was read.
void read_dependences(Reader& root, const std::string& file, nlohmann::json& record, StudyConfig& config);
/// Throws if the method cannot search a space whose parameters depend on each other so.
void check_dependences(const Reader& root, const StudyConfig& config);

/// Reads early_stopping, and W&B's early_terminate. REQUIRES that the method was read.
void read_early_stopping(Reader& root, const std::string& file, StudyConfig& config);

/// Reads points and warm_start. REQUIRES that the space, the method and the constraints were read.
void read_beginnings(Reader& root, StudyConfig& config);

/// Reads run_cap and budget. REQUIRES that the method and early stopping were read.
void read_budget(Reader& root, StudyConfig& config);

/// An entry of `metric`, which is a map, or a list of them.
struct ObjectiveNode {
  std::string path;  ///< "metric", or "metric.0" if there are several.
  Node node;
};
[[nodiscard]] std::vector<ObjectiveNode> objective_nodes(const Node& metric);
/// Reads the key `metric`.
void read_objectives(Reader& root, const std::string& file, StudyConfig& config);
/// Throws if a study of several objectives has what needs one order of its trials. REQUIRES all other keys read.
void check_several(const Reader& root, const StudyConfig& config);
/// Warns of goals other than those that the metrics suggest. Throws for a formula without a goal.
void check_goals(const Node& root, const std::string& file, const TaskSpec& task, StudyConfig& config);
/// Warns of an objective that is a loss, where parameters make it another loss in each trial.
void warn_of_losses(const Node& root, const std::string& file, const Uses& uses, StudyConfig& config);

/// Reads everything else but the task. `config.folder`, `config.file` and `config.space` are set already.
void read_study(Reader& root, const std::string& file, StudyConfig& config);

}  // namespace hfta::engine::configuration
