#include <fmt/format.h>

#include "fusion/pt2/schema.hpp"

namespace hfta::fusion::pt2 {
namespace {

// Dictionaries keep their keys as text that is JSON again, and so do classes that were registered with their fields.
std::vector<std::string> words_in(const Json& json) {
  std::vector<std::string> words;
  if (!json.is_array()) return words;
  for (const Json& item : json) {
    if (!item.is_string()) return {};
    words.push_back(item.get<std::string>());
  }
  return words;
}

std::vector<std::string> child_names(const Json& node, const Json& fields) {
  if (!node.contains("context") || !node["context"].is_string()) return {};
  const std::string text = node["context"].get<std::string>();
  const Json context = Json::parse(text, nullptr, false);
  const std::string type = context.is_string() ? context.get<std::string>() : text;  // torch 2.11 writes a bare word
  if (fields.is_object() && fields.contains(type)) {
    const Json& tuple = fields[type];
    if (tuple.is_object() && tuple.contains("field_names")) return words_in(tuple["field_names"]);
  }
  if (context.is_discarded()) return {};
  // A dataclass has the names of its fields and those of the fields that are None.
  if (context.is_array() && !context.empty() && context[0].is_array()) return words_in(context[0]);
  return words_in(context);
}

// `at`: the name and the position of the node itself; the name of all that the model returns is empty.
void add_leaves(const Json& node, const Json& fields, const Leaf& at, std::vector<Leaf>& leaves) {
  if (!node.is_object() || !node.contains("type") || node["type"].is_null()) {
    leaves.push_back(at.name.empty() ? Leaf{"0", 0} : at);
    return;
  }
  if (!node.contains("children_spec") || !node["children_spec"].is_array()) return;
  const Json& children = node["children_spec"];
  const std::vector<std::string> words = child_names(node, fields);
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string name = words.size() == children.size() ? words[i] : std::to_string(i);
    add_leaves(children[i], fields, at.name.empty() ? Leaf{name, i} : Leaf{at.name + "." + name, at.position}, leaves);
  }
}

}  // namespace

std::vector<Leaf> leaves_of(const std::string& spec, const Json& fields, const std::string& place) {
  const Json tree = parse_json(std::as_bytes(std::span(spec.data(), spec.size())), place);
  std::vector<Leaf> leaves;
  if (tree.is_array() && tree.size() == 2) add_leaves(tree[1], fields, {}, leaves);
  return leaves;
}

}  // namespace hfta::fusion::pt2
