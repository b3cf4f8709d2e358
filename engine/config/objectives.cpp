// metric: what a study optimises, one metric or several.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/study.hpp"
#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

// Fronts of more objectives hold nearly all trials, and say nothing of them.
constexpr std::size_t kMostObjectives = 4;

trials::Objective read_objective(Reader& metric) {
  const std::string name = metric.word("name");
  return {name, metric.word("goal") == "maximize" ? trials::Goal::kMaximize : trials::Goal::kMinimize};
}

void read_one(Reader metric, StudyConfig& config) {
  config.objectives = {read_objective(metric)};
  config.select_best = metric.word("select") == "best";
  config.target = metric.optional_number("target");
}

// Reads one of several objectives. Refuses keys that need a single order of the trials.
void read_one_of_several(Reader& metric, StudyConfig& config) {
  const trials::Objective objective = read_objective(metric);
  for (const trials::Objective& other : config.objectives) {
    if (other.metric == objective.metric) {
      metric.fail("name", fmt::format("found {} twice, wanted each metric once", excerpt(objective.metric)));
    }
  }
  config.objectives.push_back(objective);
  if (metric.word("select") == "best") {
    metric.fail("select", "found best among several objectives, wanted last: no epoch is best in all of them");
  }
  if (metric.has("target")) {
    metric.fail("target", "found it among several objectives, wanted a budget or run_cap: no value ends them all");
  }
}

std::string several(const StudyConfig& config) { return fmt::format("{} objectives", config.objectives.size()); }

}  // namespace

std::vector<ObjectiveNode> objective_nodes(const Node& metric) {
  if (metric.kind != Node::Kind::kList) return {{"metric", metric}};
  std::vector<ObjectiveNode> nodes;
  for (const Node& item : metric.items) {
    const std::string path = metric.items.size() == 1 ? "metric" : join_path("metric", std::to_string(nodes.size()));
    nodes.push_back({path, item});
  }
  return nodes;
}

void read_objectives(Reader& root, const std::string& file, StudyConfig& config) {
  const Node* node = root.find("metric");
  if (node == nullptr || node->kind != Node::Kind::kList) return read_one(root.section("metric"), config);
  const Site site = root.site("metric");
  const std::size_t count = node->items.size();
  if (count == 0 || count > kMostObjectives) {
    site.fail(*node, fmt::format("found {} objectives, wanted 1 to {}", count, kMostObjectives));
  }
  if (count == 1) {
    json record;
    read_one(Reader(file, node->items[0], "metric", "metric", record), config);
    root.record("metric", std::move(record));
    return;
  }
  config.objectives.clear();
  json records = json::array();
  for (const ObjectiveNode& one : objective_nodes(*node)) {
    json record;
    Reader metric(file, one.node, one.path, "metric", record);
    read_one_of_several(metric, config);
    records.push_back(std::move(record));
  }
  root.record("metric", std::move(records));
}

void check_several(const Reader& root, const StudyConfig& config) {
  if (!config.has_several_objectives()) return;
  if (!search::method(config.method).takes_objectives) {
    std::vector<std::string> others;
    for (const search::Method& method : search::methods()) {
      if (method.takes_objectives) others.emplace_back(method.name);
    }
    root.fail("method", fmt::format("found {} with {}, wanted one that needs no single order of trials: {}",
                                    config.method, several(config), join(others)));
  }
  if (!config.early_stopping.empty()) {
    root.fail(root.has("early_terminate") ? "early_terminate" : "early_stopping",
              fmt::format("found {} with {}, wanted none: trials that nothing orders cannot fall behind",
                          config.early_stopping.front().rule, several(config)));
  }
  if (config.repetitions.any()) {
    root.fail(config.repetitions.seeds > 1 ? "repeat" : "folds",
              fmt::format("found {} with {}, wanted one trial of each configuration", config.repetitions.count(),
                          several(config)));
  }
}

void check_goals(const Node& root, const std::string& file, const TaskSpec& task, StudyConfig& config) {
  const std::vector<ObjectiveNode> nodes = objective_nodes(*root.find("metric"));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto& [path, node] = nodes[i];
    const trials::Objective& objective = config.objectives[i];
    const std::optional<bool> larger = larger_is_better(task, objective.metric);
    if (!larger && node.find("goal") == nullptr) {
      fail_at(file, node, join_path(path, "goal"),
              fmt::format("found nothing, wanted minimize or maximize: {} is a metric of yours",
                          printable(objective.metric)));
    }
    if (!larger || *larger == (objective.goal == trials::Goal::kMaximize)) continue;
    config.warnings.push_back(
        fmt::format("{}:{}: {}.goal: {} is to be {}; wanted goal: {}", file, node.line, path, objective.metric,
                    *larger ? "minimized" : "maximized",
                    *larger ? "maximize, if larger is better" : "minimize, if smaller is better"));
  }
}

void warn_of_losses(const Node& root, const std::string& file, const Uses& uses, StudyConfig& config) {
  for (const auto& [path, node] : objective_nodes(*root.find("metric"))) {
    const std::string& metric = node.find("name")->text;
    if (metric != "val_loss" && metric != "train_loss") continue;
    for (const trials::Parameter& parameter : config.space) {
      const auto use = uses.of_evaluation.find(parameter.name);
      if (use == uses.of_evaluation.end() || parameter.distribution.kind == trials::DistributionKind::kConstant)
        continue;
      config.warnings.push_back(
          fmt::format("{}:{}: {}: {} of trials with different {} do not compare: each has a loss of its own; wanted a "
                      "metric that is the same for all, such as val_accuracy or val_mae",
                      file, node.line, join_path(path, "name"), metric, use->second));
    }
  }
}

}  // namespace hfta::engine::configuration
