#include "engine/config/override.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/number_text.hpp"
#include "base/text.hpp"
#include "engine/config/keys.hpp"
#include "engine/config/yaml.hpp"

namespace hfta::engine::configuration {
namespace {

// Splits a path into keys. Names below model.bind may have dots, and are one key each.
std::vector<std::string> split(const std::string& path) {
  static const std::string bind = "model.bind.";
  std::vector<std::string> keys(1);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i == bind.size() && path.starts_with(bind)) {
      keys.back() = path.substr(i);
      break;
    }
    if (path[i] == '.') {
      keys.emplace_back();
    } else {
      keys.back() += path[i];
    }
  }
  return keys;
}

void mark_origin(Node& node, const std::string& origin) {
  node.origin = origin;
  for (Node& item : node.items) mark_origin(item, origin);
  for (Entry& entry : node.entries) mark_origin(entry.value, origin);
}

[[noreturn]] void refuse(const std::string& origin, const std::string& message) {
  throw Error(ErrorKind::kConfig, printable(origin) + ": " + message);
}

Node parse_value(const Override& override, const std::string& origin) {
  try {
    Node value = parse_yaml(override.value, "--set");
    mark_origin(value, origin);
    return value;
  } catch (const Error&) {
    refuse(origin, fmt::format("found '{}', wanted a value as YAML has it", printable(override.value)));
  }
}

Node& list_item(Node& list, const std::string& key, const std::string& origin) {
  const auto index = parse_number<std::size_t>(key);
  if (!index || *index >= list.items.size()) {
    const std::string wanted = list.items.empty() ? "no position: the list is empty"
                                                  : fmt::format("a position from 0 to {}", list.items.size() - 1);
    refuse(origin, fmt::format("found '{}', wanted {}", printable(key), wanted));
  }
  return list.items[*index];
}

Node& map_value(Node& map, const std::string& key, const std::string& origin) {
  if (Node* value = map.find(key)) return *value;
  Node fresh = scalar_node("", false, map.line);
  fresh.origin = origin;
  map.entries.push_back({key, map.line, std::move(fresh)});
  return map.entries.back().value;
}

Node& step(Node& node, const std::string& path, const std::string& key, const std::string& origin) {
  if (key.empty()) refuse(origin, "found an empty key, wanted key.path=value");
  if (node.kind == Node::Kind::kList) return list_item(node, key, origin);
  if (node.kind == Node::Kind::kScalar) {
    if (!node.is_null() && short_for(path).empty()) {
      refuse(origin, fmt::format("found {} at {}, wanted a map or a list to set '{}' in", found_text(node),
                                 printable(path), printable(key)));
    }
    Node map;
    map.kind = Node::Kind::kMap;
    map.line = node.line;
    map.origin = node.origin;
    if (!node.is_null()) map.entries.push_back({std::string(short_for(path)), node.line, node});
    node = std::move(map);
  }
  return map_value(node, key, origin);
}

}  // namespace

void apply_override(Node& root, const Override& override) {
  const std::string origin = override.flag.empty() ? "--set " + override.key_path : override.flag;
  Node value = parse_value(override, origin);
  Node* node = &root;
  std::string path;
  for (const std::string& key : split(override.key_path)) {
    node = &step(*node, path, key, origin);
    path = join_path(path, key);
  }
  *node = std::move(value);
}

}  // namespace hfta::engine::configuration
