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

// Reads model.init: exported, fresh, or {jitter: 0.01}
void read_init(Reader& model, const std::string& file, fusion::ImportOptions& import) {
  const Node* node = model.find("init");
  model.record("init", node != nullptr ? to_json(*node) : json("exported"));
  if (node == nullptr) return;
  const Site site = model.site("init");
  if (node->kind == Node::Kind::kMap) {
    if (node->entries.size() != 1 || node->entries.front().key != "jitter") site.mismatch(*node);
    static const Key factor{.path = "model.init.jitter", .least = 0, .above = true};
    import.jitter = Site{file, join_path(site.path, "jitter"), factor}.number(node->entries.front().value);
    return;
  }
  const std::string word = node->kind == Node::Kind::kScalar ? site.word(*node) : "";
  if (word != "exported" && word != "fresh") site.mismatch(*node);
  import.fresh = word == "fresh";
}

std::filesystem::path path_of(const std::string& word) { return std::filesystem::path(word).lexically_normal(); }

// Reads model.evaluation. An absent key means the training graph, too: where that is allowed, results are the same.
void read_evaluation(Reader& model, const std::filesystem::path& folder, ModelFile& found) {
  const Node* node = model.find("evaluation");
  if (node == nullptr || (node->is_null() && node->from.empty())) return;
  const std::string word = node->is_null() ? "" : model.site("evaluation").word(*node);
  found.evaluation_by_training = word == "training_graph";
  if (!found.evaluation_by_training && !word.empty()) {
    found.evaluation_name = path_of(word).string();
    found.evaluation_file = (folder / path_of(word)).lexically_normal();
  }
  if (!found.evaluation_name.empty() || !node->from.empty()) model.record("evaluation", to_json(*node));
}

}  // namespace

ModelFile read_model_file(Reader& model, const TaskText& text) {
  const std::string& file = text.file;
  const std::filesystem::path& folder = text.folder;
  ModelFile found;
  const std::filesystem::path path = path_of(model.word("file"));
  found.name = path.string();
  found.file = (folder / path).lexically_normal();
  found.import.where = place_of(file, *model.find("file")) + ": model";
  found.import.freeze = read_freeze(model);
  found.import.bind = read_bind(model, file);
  read_init(model, file, found.import);
  // Records the key only if it is there, so that studies from before there was the key compare as equal.
  if (const Node* node = model.find("adapters"); node != nullptr && !node->is_null()) {
    Reader adapters = model.section("adapters");
    found.import.lora = read_adapters(adapters, file, text.space);
  }
  read_evaluation(model, folder, found);
  return found;
}

}  // namespace hfta::engine::configuration
