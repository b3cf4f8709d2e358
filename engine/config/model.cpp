#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/config/layer_form.hpp"
#include "engine/config/task.hpp"
#include "fusion/layers.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

class LayerReader {
 public:
  LayerReader(const std::string& file, const Node& node, std::string path)
      : file_(file), node_(node), path_(std::move(path)) {
    layer_.where = place_of(file_, node_);
  }

  fusion::LayerSpec read(json& record) {
    record = json::object();
    if (node_.kind == Node::Kind::kScalar) {
      read_kind(node_);
      record["kind"] = to_json(node_);
      return std::move(layer_);
    }
    if (node_.kind != Node::Kind::kMap)
      fail(node_, path_, fmt::format("found {}, wanted {}", found_text(node_), kForms));
    const LayerForm form = layer_form(node_);
    if (form.kind == nullptr) fail(node_, path_, fmt::format("found no kind of layer, wanted {}", kForms));
    if (form.second_kind != nullptr) {
      fail(node_, path_,
           fmt::format("found the kinds '{}' and '{}', wanted one kind of layer in an item of the list", form.kind->key,
                       form.second_kind->key));
    }
    read_kind(scalar_node(form.kind->key, true, form.kind->line));
    record["kind"] = form.kind->key;
    read_arguments(form, record);
    return std::move(layer_);
  }

 private:
  static constexpr const char* kForms = "a layer such as relu, {linear: [64, 10]} or {dropout: {p: 0.5}, name: drop}";

  [[noreturn]] void fail(const Node& node, const std::string& path, const std::string& message) const {
    fail_at(file_, node, path, message);
  }

  void read_kind(const Node& node) {
    const auto* word = std::get_if<std::string>(&node.value);
    if (word == nullptr) fail(node_, path_, fmt::format("found {}, wanted {}", found_text(node), kForms));
    const std::vector<std::string>& kinds = fusion::layer_kinds();
    if (std::count(kinds.begin(), kinds.end(), *word) == 0) {
      fail(node_, path_, fmt::format("found {}, wanted a kind of layer{}", found_text(node), suggestion(*word, kinds)));
    }
    layer_.kind = *word;
  }

  void name(const Node& node, json& record) {
    const auto* word = std::get_if<std::string>(&node.value);
    if (word == nullptr || word->empty() || node.kind != Node::Kind::kScalar) {
      fail(node, join_path(path_, "name"), fmt::format("found {}, wanted a word", found_text(node)));
    }
    if (!layer_.name.empty()) fail(node, join_path(path_, "name"), "found two names, wanted one");
    layer_.name = *word;
    record["name"] = to_json(node);
  }

  void read_arguments(const LayerForm& form, json& record) {
    const std::string path = join_path(path_, form.kind->key);
    const bool listed = form.kind->value.kind == Node::Kind::kList;
    for (std::size_t i = 0; i < form.positional.size(); ++i) {
      const Node& node = *form.positional[i];
      layer_.positional.push_back(argument(node, listed ? join_path(path, std::to_string(i)) : path));
      record["args"].push_back(to_json(node));
    }
    const bool below = form.kind->value.kind == Node::Kind::kMap;
    for (const Entry* entry : form.named) {
      if (entry->key == "name") {
        name(entry->value, record);
        continue;
      }
      layer_.named.emplace_back(entry->key, argument(entry->value, join_path(below ? path : path_, entry->key)));
      record["named"][entry->key] = to_json(entry->value);
    }
  }

  fusion::LayerArg argument(const Node& node, const std::string& path) const {
    if (node.kind == Node::Kind::kList) return integers(node, path);
    if (node.kind == Node::Kind::kScalar && !node.out_of_range) {
      if (const auto* flag = std::get_if<bool>(&node.value)) return *flag;
      if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return *integer;
      if (const auto* word = std::get_if<std::string>(&node.value)) return *word;
      const auto* real = std::get_if<double>(&node.value);
      if (real != nullptr && std::isfinite(*real)) return *real;
    }
    fail(node, path,
         fmt::format("found {}, wanted a finite number, true, false, a word or a list of integers", found_text(node)));
  }

  std::vector<std::int64_t> integers(const Node& node, const std::string& path) const {
    std::vector<std::int64_t> list;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Node& item = node.items[i];
      const auto* integer = std::get_if<std::int64_t>(&item.value);
      const auto* real = std::get_if<double>(&item.value);
      const bool whole = real != nullptr && !item.from.empty() && std::floor(*real) == *real && std::abs(*real) < 1e15;
      if (item.kind != Node::Kind::kScalar || (integer == nullptr && !whole)) {
        fail(item, join_path(path, std::to_string(i)), fmt::format("found {}, wanted an integer", found_text(item)));
      }
      list.push_back(integer != nullptr ? *integer : static_cast<std::int64_t>(*real));
    }
    return list;
  }

  const std::string& file_;
  const Node& node_;
  std::string path_;
  fusion::LayerSpec layer_;
};

std::vector<fusion::LayerSpec> read_layers(const Reader& model, const std::string& file, json& record) {
  const Node* list = model.find("layers");
  const Site site = model.site("layers");
  if (list->kind != Node::Kind::kList || list->items.empty()) site.mismatch(*list);
  std::vector<fusion::LayerSpec> layers;
  json& recorded = record["layers"] = json::array();
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    json& layer = recorded.emplace_back();
    layers.push_back(LayerReader(file, list->items[i], join_path(site.path, std::to_string(i))).read(layer));
  }
  return layers;
}

}  // namespace

void read_model(Reader& model, const TaskText& text, json& record, TaskSpec& task) {
  const bool exported = model.has("file");
  if (exported && model.has("layers")) model.fail("file", "found both layers and file, wanted one of them");
  if (!exported && !model.has("layers")) {
    model.fail("layers", "found nothing, wanted a list of layers, or an exported model: file: model.pt2");
  }
  const std::string kind = exported ? "file" : "layers";
  model.restrict_to(kind, {kind});
  if (exported) {
    task.model_file = read_model_file(model, text);
  } else {
    task.layers = read_layers(model, text.file, record);
  }
}

}  // namespace hfta::engine::configuration
