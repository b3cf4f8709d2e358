#include "engine/config/typed_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <variant>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "engine/config/yaml.hpp"

namespace hfta::engine::configuration {

TypedFile::TypedFile(std::string_view name) : name_(printable(name)) {}

void TypedFile::wrong(const Node& node, const std::string& key, const std::string& wanted) const {
  fail_at(name_, node, key, fmt::format("found {}, wanted {}", found_text(node), wanted));
}

Node TypedFile::root(std::string_view text, const std::string& wanted) const {
  Node root = parse_yaml(text, name_);
  if (root.kind != Node::Kind::kMap) wrong(root, "", wanted);
  return root;
}

int TypedFile::integer(const Node& node, const std::string& key, int least, int most) const {
  const auto* value = node.kind == Node::Kind::kScalar ? std::get_if<std::int64_t>(&node.value) : nullptr;
  if (value == nullptr || *value < least || *value > most) {
    wrong(node, key, fmt::format("an integer from {} to {}", least, most));
  }
  return static_cast<int>(*value);
}

double TypedFile::number(const Node& node, const std::string& key, double least, double most,
                         const std::string& unit) const {
  const auto* real = std::get_if<double>(&node.value);
  const auto* whole = std::get_if<std::int64_t>(&node.value);
  const bool is_number = node.kind == Node::Kind::kScalar && (real != nullptr || whole != nullptr);
  const double value = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : 0;
  if (!is_number || !(value >= least && value <= most)) {
    wrong(node, key, fmt::format("{}, {} to {}", unit, shortest(least), shortest(most)));
  }
  return value;
}

double TypedFile::number_of(const Node& map, const std::string& key, double fallback, double least, double most,
                            const std::string& unit) const {
  const Node* node = map.find(key);
  return node == nullptr ? fallback : number(*node, key, least, most, unit);
}

const std::vector<Node>& TypedFile::list(const Node& node, const std::string& key, const std::string& wanted) const {
  if (node.kind != Node::Kind::kList) wrong(node, key, wanted);
  return node.items;
}

void TypedFile::check_keys(const Node& map, std::initializer_list<const char*> known) const {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const Entry& entry : map.entries) {
    if (std::count(names.begin(), names.end(), entry.key) > 0) continue;
    fail_at(name_, entry.value, excerpt(entry.key), "unknown key" + suggestion(entry.key, names));
  }
}

std::string read_text(const std::filesystem::path& path) {
  try {
    const std::vector<std::byte> bytes = SystemFiles().read(path, kMostBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: cannot be read, or is empty: {}", printable(path.string()), error.what()));
  }
}

}  // namespace hfta::engine::configuration
