#include <nlohmann/json.hpp>

#include "engine/config/task.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

std::vector<std::string> read_freeze(Reader& model) {
  json& recorded = model.record("freeze", json::array());
  const Node* node = model.find("freeze");
  if (node == nullptr) return {};
  if (node->is_null()) {  // a search may choose to freeze nothing
    if (!node->from.empty()) recorded = to_json(*node);
    return {};
  }
  recorded = node->kind == Node::Kind::kList ? to_json(*node) : json::array({to_json(*node)});
  return model.site("freeze").words(*node);
}

std::vector<fusion::Binding> read_bind(Reader& model, const std::string& file) {
  json& recorded = model.record("bind", json::object());
  const Node* map = model.find("bind");
  if (map == nullptr || map->is_null()) return {};
  const Site site = model.site("bind");
  if (map->kind != Node::Kind::kMap) site.mismatch(*map);
  static const Key number{.path = "model.bind.*", .type = KeyType::kNumber};
  std::vector<fusion::Binding> bindings;
  for (const Entry& entry : map->entries) {
    const Site place{file, join_path(site.path, entry.key), number};
    bindings.push_back({entry.key, place.number(entry.value), place_of(file, entry.value) + ": model.bind"});
    recorded[entry.key] = entry.value.from.empty() ? json(bindings.back().value) : to_json(entry.value);
  }
  return bindings;
}

}  // namespace

ModelFile read_model_file(Reader& model, const std::string& file, const std::filesystem::path& folder) {
  ModelFile found;
  const std::filesystem::path path = std::filesystem::path(model.word("file")).lexically_normal();
  found.name = path.string();
  found.file = (folder / path).lexically_normal();
  found.import.where = place_of(file, *model.find("file")) + ": model";
  found.import.freeze = read_freeze(model);
  found.import.bind = read_bind(model, file);
  found.import.fresh = model.word("init") == "fresh";
  return found;
}

void read_output(Reader& loss, TaskSpec& task) {
  const Node* node = loss.find("output");
  if (!task.model_file) {
    if (node != nullptr) loss.fail("output", "found it beside model.layers, whose one output the loss takes");
    return;
  }
  loss.record("output", node != nullptr ? to_json(*node) : json());
  if (node == nullptr || node->is_null()) return;
  const Site site = loss.site("output");
  if (std::holds_alternative<std::string>(node->value) && node->kind == Node::Kind::kScalar) {
    task.model_file->import.output = site.word(*node);
  } else {
    task.model_file->import.output = site.integer(*node);
  }
}

}  // namespace hfta::engine::configuration
