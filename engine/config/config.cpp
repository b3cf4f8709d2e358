#include "engine/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/config/auto_adapters.hpp"
#include "engine/config/auto_method.hpp"
#include "engine/config/check.hpp"
#include "engine/config/override.hpp"
#include "engine/config/references.hpp"
#include "engine/config/repetition.hpp"
#include "engine/config/study.hpp"
#include "engine/config/task.hpp"
#include "engine/config/yaml.hpp"
#include "search/completion.hpp"

namespace hfta::engine {
namespace {

using namespace configuration;
using nlohmann::json;
namespace fs = std::filesystem;

void expand_short(Node& node, std::string_view inner, int line) {
  if (node.kind != Node::Kind::kScalar || node.is_null()) return;
  Node map;
  map.kind = Node::Kind::kMap;
  map.line = node.line;
  map.origin = node.origin;
  map.entries.push_back({std::string(inner), line, std::move(node)});
  node = std::move(map);
}

// `loss: mse` is short for `loss: {name: mse}`. `path`: where the map stands, "" or "train.".
void expand_words(Node& in, const std::string& path) {
  for (Entry& entry : in.entries) {
    const std::string_view inner = short_for(path + entry.key);
    if (inner.empty()) continue;
    expand_short(entry.value, inner, entry.line);
    if (path + entry.key != "early_stopping") continue;
    for (Node& item : entry.value.items) expand_short(item, inner, item.line);
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

// W&B's bounds of log_uniform are natural logarithms; values are often given instead, those of rates between 0 and 1.
void warn_of_logarithms(const Node& root, const std::string& file, StudyConfig& config) {
  using Kind = trials::DistributionKind;
  for (const Entry& entry : root.find("parameters")->entries) {
    const auto found = std::find_if(config.space.begin(), config.space.end(),
                                    [&](const trials::Parameter& one) { return one.name == entry.key; });
    if (found == config.space.end()) continue;
    const trials::Distribution& range = found->distribution;
    const bool logarithms = range.kind == Kind::kLogUniform || range.kind == Kind::kQLogUniform;
    if (!logarithms || range.min <= 0 || range.max > 1) continue;
    config.warnings.push_back(fmt::format(
        "{}:{}: parameters.{}: found {} from {} to {}, which are natural logarithms: its values are {:.4g} to {:.4g}; "
        "for values from {} to {}: {}_values",
        file, entry.line, entry.key, name_of(range.kind), shortest(range.min), shortest(range.max), std::exp(range.min),
        std::exp(range.max), shortest(range.min), shortest(range.max), name_of(range.kind)));
  }
}

// Drops the default, so that studies from before there was the key compare as equal.
void drop_default_stopping(json& record) {
  json& stopping = record.at("early_stopping");
  const auto drop_mode = [](json& rule) {
    if (rule.value("mode", "") == "promote") rule.erase("mode");
  };
  if (stopping.is_array()) {
    std::for_each(stopping.begin(), stopping.end(), drop_mode);
  } else {
    drop_mode(stopping);
  }
  if (stopping.empty() || (stopping.is_object() && stopping.at("name") == "none")) record.erase("early_stopping");
}

// Drops `memory` from the record unless the policy compresses: no other policy changes bits.
void drop_memory(json& record) {
  json& memory = record.at("memory");
  memory.erase("limit");
  if (memory.at("policy") != name_of(fusion::MemoryPolicy::kCompress)) record.erase("memory");
}

// Drops keys from the record that may change without changing results.
void drop_what_decides_nothing(json& record) {
  for (const char* key : {"study", "storage", "run_cap", "budget", "array"}) record.erase(key);
  drop_memory(record);
  if (record.at("metric").is_object()) record.at("metric").erase("target");
  const search::Method& chosen = search::method(record.at("method").get<std::string>());
  const std::string lender = chosen.takes_sampler ? record.at(chosen.name).value("sampler", "") : "";
  for (const search::Method& method : search::methods()) {
    if (chosen.name != std::string_view(method.name) && lender != method.name) record.erase(method.name);
  }
  if (lender == search::MethodOptions().sampler) record.at(chosen.name).erase("sampler");
  drop_default_stopping(record);
  const bool repeats = record.at("repeat") != 1, folds = record.at("folds").at("count") != 1;
  if (!repeats) record.erase("repeat");
  if (!folds) record.erase("folds");
  if (!repeats && !folds) record.erase("rank");
}

// The task of base_params, or of other parameters where a constraint excludes these and they make no task.
TaskSpec some_task(const TaskText& task, const StudyConfig& config, json& record) {
  const trials::Params base = trials::applying(config.space, base_params(config.space));
  const json before = record;
  try {
    return read_task(task, base, record);
  } catch (const Error&) {
    if (search::broken(config.constraints, base) == nullptr) throw;
    const search::Completion other = search::complete(config.space, {}, 0, 0, config.constraints);
    if (!other.problem.empty()) throw;
    record = before;
    return read_task(task, other.params, record);
  }
}

}  // namespace

StudyConfig parse_config(const std::string& text, const fs::path& file, const std::vector<Override>& overrides,
                         const std::optional<AutoChoice>& begun) {
  const std::string shown = printable(file.string());
  Node root = read_tree(text, shown, overrides);
  StudyConfig config;
  config.choice = settle_method(root, shown, begun);
  config.file = file;
  config.folder = fs::absolute(file).lexically_normal().parent_path();
  config.text = text;
  config.overrides = overrides;

  json record = json::object();
  Reader reader(shown, root, "", "", record);
  config.space = read_space(reader, shown, record);
  read_dependences(reader, shown, record, config);
  const FoldKeys folds = read_repetitions(reader, shown, config);
  const Uses uses = find_references(shown, root, config.space);
  config.shape_changing = uses.shape_changing;
  const trials::Space searched = config.space;
  config.padded = uses.padded;
  read_study(reader, shown, config);
  add_axes(folds, config);

  auto task = std::make_shared<TaskText>();
  task->file = shown;
  task->folder = config.folder;
  task->tree = task_part(root);
  task->otherwise = config.otherwise;
  task->space = searched;
  task->repetitions = config.repetitions;
  task->folds = folds;
  const search::Method& method = search::method(config.method);
  task->default_epochs = method.max_epochs != nullptr ? method.max_epochs(config.method_options) : 0;
  task->compression = config.memory.compression;
  for (const ObjectiveNode& one : objective_nodes(*root.find("metric"))) {
    task->metrics.push_back({join_path(one.path, "name"), *one.node.find("name")});
  }
  config.task = [task](const trials::Params& params) {
    json unused;
    return read_task(*task, params, unused);
  };
  check_space(config, uses.used);
  check_goals(root, shown, some_task(*task, config, record), config);
  drop_what_decides_nothing(record);
  config.normalized = record.dump();
  warn_of_unused(root, shown, uses, config);
  warn_of_logarithms(root, shown, config);
  warn_of_losses(root, shown, uses, config);
  return config;
}

StudyConfig load_config(const fs::path& file, const std::vector<Override>& overrides,
                        const std::optional<AutoChoice>& begun) {
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
  return parse_config(text, file, overrides, begun);
}

}  // namespace hfta::engine
