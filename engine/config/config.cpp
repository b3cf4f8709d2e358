#include "engine/config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/config/auto_adapters.hpp"
#include "engine/config/check.hpp"
#include "engine/config/override.hpp"
#include "engine/config/references.hpp"
#include "engine/config/study.hpp"
#include "engine/config/task.hpp"
#include "engine/config/yaml.hpp"

namespace hfta::engine {
namespace {

using namespace configuration;
using nlohmann::json;
namespace fs = std::filesystem;

// `loss: mse` is short for `loss: {name: mse}`. `path`: where the map stands, "" or "train.".
void expand_words(Node& in, const std::string& path) {
  for (Entry& entry : in.entries) {
    if (!is_named_section(path + entry.key) || entry.value.kind != Node::Kind::kScalar || entry.value.is_null())
      continue;
    Node map;
    map.kind = Node::Kind::kMap;
    map.line = entry.value.line;
    map.origin = entry.value.origin;
    map.entries.push_back({"name", entry.line, std::move(entry.value)});
    entry.value = std::move(map);
  }
}

Node read_tree(const std::string& text, const std::string& file, const std::vector<Override>& overrides) {
  Node root = parse_yaml(text, file);
  if (root.is_null()) throw Error(ErrorKind::kConfig, file + ": found an empty file, wanted a config");
  if (root.kind != Node::Kind::kMap) {
    throw Error(ErrorKind::kConfig, fmt::format("{}:{}: found {}, wanted a map of study, metric, parameters, model, "
                                                "data, train, ...",
                                                file, root.line, found_text(root)));
  }
  for (const Override& override : overrides) apply_override(root, override);
  expand_words(root, "");
  Node* train = root.find("train");
  if (train == nullptr) return root;
  expand_words(*train, "train.");
  expand_auto_lora(root);
  train = root.find("train");
  if (Node* phases = train->find("phases")) {
    for (Node& phase : phases->items) expand_words(phase, "train.phases.*.");
  }
  return root;
}

Node task_part(const Node& root) {
  Node tree;
  tree.kind = Node::Kind::kMap;
  for (const Entry& entry : root.entries) {
    if (entry.key == "model" || entry.key == "data" || entry.key == "train") tree.entries.push_back(entry);
  }
  return tree;
}

void warn_of_unused(const Node& root, const std::string& file, const Uses& uses, StudyConfig& config) {
  for (const Entry& entry : root.find("parameters")->entries) {
    if (uses.used.contains(entry.key)) continue;
    config.warnings.push_back(
        fmt::format("{}:{}: parameters.{}: found it used nowhere, wanted \"${{{}}}\" under model, "
                    "data or train",
                    file, entry.line, entry.key, entry.key));
  }
}

void check_goal(const Node& root, const std::string& file, const TaskSpec& task, StudyConfig& config) {
  const std::optional<bool> larger = larger_is_better(task, config.metric);
  const Node& metric = *root.find("metric");
  if (!larger && metric.find("goal") == nullptr) {
    fail_at(
        file, metric, "metric.goal",
        fmt::format("found nothing, wanted minimize or maximize: {} is a metric of yours", printable(config.metric)));
  }
  if (!larger || *larger == (config.goal == trials::Goal::kMaximize)) return;
  config.warnings.push_back(fmt::format("{}:{}: metric.goal: {} is to be {}; wanted goal: {}", file, metric.line,
                                        config.metric, *larger ? "minimized" : "maximized",
                                        *larger ? "maximize, if larger is better" : "minimize, if smaller is better"));
}

// What may change without changing results.
void drop_what_decides_nothing(json& record) {
  for (const char* key : {"study", "storage", "run_cap", "array"}) record.erase(key);
  for (const search::Method& method : search::methods()) {
    if (record.at("method") != method.name) record.erase(method.name);
  }
  // A study that was begun before there was the key still is what it was.
  if (record.at("early_stopping").at("name") == "none") record.erase("early_stopping");
}

}  // namespace

StudyConfig parse_config(const std::string& text, const fs::path& file, const std::vector<Override>& overrides) {
  const std::string shown = printable(file.string());
  const Node root = read_tree(text, shown, overrides);
  StudyConfig config;
  config.file = file;
  config.folder = fs::absolute(file).lexically_normal().parent_path();
  config.text = text;

  json record = json::object();
  Reader reader(shown, root, "", "", record);
  config.space = read_space(reader, shown, record);
  const Uses uses = find_references(shown, root, config.space);
  config.shape_changing = uses.shape_changing;
  config.padded = uses.padded;
  read_study(reader, shown, config);

  auto task = std::make_shared<TaskText>();
  task->file = shown;
  task->folder = config.folder;
  task->tree = task_part(root);
  task->space = config.space;
  const search::Method& method = search::method(config.method);
  task->default_epochs = method.max_epochs != nullptr ? method.max_epochs(config.method_options) : 0;
  task->metric = config.metric;
  task->metric_node = *root.find("metric")->find("name");
  config.task = [task](const trials::Params& params) {
    json unused;
    return read_task(*task, params, unused);
  };
  check_space(config, uses.used);
  check_goal(root, shown, read_task(*task, base_params(config.space), record), config);
  drop_what_decides_nothing(record);
  config.normalized = record.dump();
  warn_of_unused(root, shown, uses, config);
  return config;
}

StudyConfig load_config(const fs::path& file, const std::vector<Override>& overrides) {
  const std::string shown = printable(file.string());
  std::error_code error;
  if (fs::is_directory(file, error)) throw Error(ErrorKind::kConfig, shown + ": found a folder, wanted a config file");
  std::string text;
  try {
    const std::vector<std::byte> bytes = SystemFiles().read(file, kMostBytes);
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const Error& cause) {
    throw Error(ErrorKind::kConfig, cause.what());
  }
  return parse_config(text, file, overrides);
}

}  // namespace hfta::engine
