#include "engine/config/node.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/scalar.hpp"

namespace hfta::engine::configuration {
namespace {

constexpr std::size_t kMostShown = 60;

// The text, cut between characters so that the message stays valid UTF-8.
std::string shown(const std::string& text) {
  if (text.size() <= kMostShown) return printable(text);
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return printable(text.substr(0, end)) + "...";
}

std::string value_text(const Node& node) {
  if (std::holds_alternative<std::monostate>(node.value)) return node.from.empty() ? "nothing" : "null";
  if (const auto* word = std::get_if<std::string>(&node.value)) return "'" + shown(*word) + "'";
  return trials::to_text(node.value);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node scalar_node(std::string text, bool quoted, int line) {
  Node node;
  node.quoted = quoted;
  node.line = line;
  if (quoted) {
    node.value = text;
  } else {
    Resolved resolved = resolve(text);
    node.value = std::move(resolved.value);
    node.out_of_range = resolved.out_of_range;
  }
  node.text = std::move(text);
  return node;
}

std::string found_text(const Node& node) {
  if (node.kind == Node::Kind::kList) return node.items.empty() ? "an empty list" : "a list";
  if (node.kind == Node::Kind::kMap) return "a map";
  if (!node.from.empty()) return fmt::format("{} (from ${{{}}})", value_text(node), printable(node.from));
  if (node.out_of_range) return shown(node.text) + " (beyond the range of a double)";
  if (node.is_null() || node.value.index() == 4) return value_text(node);
  return shown(node.text);  // numbers as they were written
}

void fail_at(const std::string& file, const Node& node, const std::string& path, const std::string& message) {
  constexpr std::size_t kMostPath = 200;
  std::string place;
  if (node.origin.empty()) {
    place = fmt::format("{}:{}: {}", file, node.line, excerpt(path, kMostPath));
  } else {
    place = excerpt(node.origin, kMostPath);
    if (node.origin.starts_with("--set ") && node.origin != "--set " + path) place += ": " + excerpt(path, kMostPath);
  }
  const bool bare = path.empty();
  if (bare && node.origin.empty()) place = fmt::format("{}:{}", file, node.line);
  throw Error(ErrorKind::kConfig, place + ": " + message);
}

std::string join_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace hfta::engine::configuration
