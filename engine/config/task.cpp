#include "engine/config/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/references.hpp"
#include "engine/config/repetition.hpp"
#include "search/space.hpp"

namespace hfta::engine::configuration {
namespace {

bool is_validated(const TaskSpec& task) {
  return task.data.validation || !task.data.validation_file.empty() || task.data.folds.count > 1;
}

// Names of the metrics recorded for every epoch; if a metric gives one number per class, only the first.
std::vector<std::string> recorded_metrics(const TaskSpec& task) {
  std::vector<std::string> names = {"train_loss"};
  for (const fusion::Phase& phase : task.recipe.phases) names.push_back("train_" + phase.loss);
  if (!is_validated(task)) return names;
  names.emplace_back("val_loss");
  for (const fusion::MetricSpec& metric : task.recipe.metrics) {
    const auto first = std::vector<int>(static_cast<std::size_t>(fusion::index_count(metric)), 0);
    names.push_back("val_" + fusion::recorded_name(metric, first));
  }
  for (const fusion::NamedFormula& formula : task.recipe.formulas) names.push_back("val_" + formula.name);
  return names;
}

// The metric of the task that gives the recorded metric `name`; null: none does.
const fusion::MetricSpec* metric_behind(const TaskSpec& task, std::string_view name) {
  if (!is_validated(task) || !name.starts_with("val_")) return nullptr;
  name.remove_prefix(4);
  for (const fusion::MetricSpec& metric : task.recipe.metrics) {
    if (fusion::gives(metric, name)) return &metric;
  }
  return nullptr;
}

// The parameters that do not apply to a trial, and what stands for them.
Absent absent_from(const TaskText& text, const trials::Params& params) {
  Absent absent;
  for (const trials::Parameter& parameter : text.space) {
    if (parameter.when.empty() || trials::find_value(params, parameter.name) != nullptr) continue;
    const auto found = text.otherwise.find(parameter.name);
    absent[parameter.name] = found == text.otherwise.end() ? std::nullopt : std::optional(found->second);
  }
  return absent;
}

void check_metric(const TaskText& text, const TaskSpec& task, const std::string& path, const Node& node) {
  std::vector<std::string> names = recorded_metrics(task);
  const std::string& metric = node.text;
  const bool is_recorded = metric == kParameterCount || std::count(names.begin(), names.end(), metric) > 0;
  if (is_recorded || metric_behind(task, metric) != nullptr) return;
  const std::string found = "found '" + excerpt(metric) + "', wanted ";
  if (!is_validated(task) && metric.starts_with("val_")) {
    fail_at(text.file, node, path, found + "train_loss: there is no validation set (data.validation adds one)");
  }
  names.emplace_back(kParameterCount);
  fail_at(text.file, node, path,
          found + "a metric that this task records" + suggestion(metric, names) +
              (nearest(metric, names).empty() ? "" : " Recorded: " + join(names)));
}

}  // namespace

std::optional<bool> larger_is_better(const TaskSpec& task, std::string_view name) {
  if (name == "train_loss" || name == "val_loss" || name == kParameterCount) return false;
  const fusion::MetricSpec* metric = metric_behind(task, name);
  return metric == nullptr ? std::nullopt : fusion::find_metric(metric->name)->larger_is_better;
}

std::string place_of(const std::string& file, const Node& node) {
  return node.origin.empty() ? fmt::format("{}:{}", file, node.line) : printable(node.origin);
}

std::vector<std::string> possible_words(const Node* node, const trials::Space& space) {
  if (node == nullptr) return {};
  std::vector<std::string> words = {trials::to_text(node->value)};
  for (const trials::Parameter& parameter : space) {
    if (parameter.name != node->from) continue;
    for (const trials::ParamValue& value : search::extremes(parameter.distribution)) {
      words.push_back(trials::to_text(value));
    }
  }
  return words;
}

TaskSpec read_task(const TaskText& text, const trials::Params& params, nlohmann::json& record) {
  const Node tree = substitute(text.file, text.tree, "", {params, absent_from(text, params)});
  Reader root(text.file, tree, "", "", record);
  TaskSpec task;
  Reader model = root.section("model");
  read_model(model, text, record["model"], task);
  Reader data = root.section("data");
  task.data.where = place_of(text.file, *root.find("data"));
  Reader train = root.section("train");
  read_data(data, text.folder, text.space, !has_loss_of_model(train), task);
  read_train(train, text, task);
  task.recipe.compression = text.compression;
  repeat_task(text, params, data, task);
  for (const auto& [path, node] : text.metrics) check_metric(text, task, path, node);
  return task;
}

}  // namespace hfta::engine::configuration
