#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "engine/config/reader.hpp"

namespace hfta::engine::configuration {
namespace {

bool within(const Key& key, double value) {
  if (key.above ? !(value > key.least) : !(value >= key.least)) return false;
  return key.below ? value < key.most : value <= key.most;
}

// Whole numbers that a search gives as doubles (q_uniform) are integers too; a literal 3.0 is not.
std::optional<std::int64_t> whole(const Node& node) {
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return *integer;
  const auto* real = std::get_if<double>(&node.value);
  if (real == nullptr || node.from.empty() || std::floor(*real) != *real || std::abs(*real) > 0x1p53) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*real);
}

bool is_scalar(const Node& node) { return node.kind == Node::Kind::kScalar && !node.out_of_range; }

}  // namespace

void Site::mismatch(const Node& node) const {
  std::string hint;
  const auto* word = std::get_if<std::string>(&node.value);
  if (node.kind == Node::Kind::kScalar && word != nullptr) {
    if (key.type == KeyType::kChoice) {
      const std::string near = nearest(*word, key.choices);
      if (!near.empty()) hint = "; did you mean '" + near + "'?";
    } else if (node.quoted && node.from.empty() && scalar_node(*word, false, 1).value.index() != node.value.index()) {
      hint = "; without quotes";
    }
  }
  fail(node, fmt::format("found {}, wanted {}{}", found_text(node), wanted_text(key), hint));
}

std::int64_t Site::integer(const Node& node) const {
  const auto value = is_scalar(node) ? whole(node) : std::nullopt;
  if (!value || !within(key, static_cast<double>(*value))) mismatch(node);
  return *value;
}

double Site::number(const Node& node) const {
  if (!is_scalar(node)) mismatch(node);
  const auto* integer = std::get_if<std::int64_t>(&node.value);
  const auto* real = std::get_if<double>(&node.value);
  if (integer == nullptr && real == nullptr) mismatch(node);
  const double value = integer != nullptr ? static_cast<double>(*integer) : *real;
  if (!std::isfinite(value)) {
    fail(node, fmt::format("found {}, wanted {} that is finite", found_text(node), wanted_text(key)));
  }
  if (!within(key, value)) mismatch(node);
  return value;
}

bool Site::flag(const Node& node) const {
  const auto* flag = std::get_if<bool>(&node.value);
  if (!is_scalar(node) || flag == nullptr) mismatch(node);
  return *flag;
}

std::string Site::word(const Node& node) const {
  // An unquoted number can be a word too where any word will do: `study: 2024`.
  if (!is_scalar(node) || node.is_null()) mismatch(node);
  const auto* found = std::get_if<std::string>(&node.value);
  if (found == nullptr && key.type == KeyType::kChoice) mismatch(node);
  const std::string word = found != nullptr ? *found : node.from.empty() ? node.text : trials::to_text(node.value);
  if (key.type == KeyType::kChoice && std::count(key.choices.begin(), key.choices.end(), word) == 0) mismatch(node);
  if (word.empty()) fail(node, "found an empty word, wanted " + wanted_text(key));
  return word;
}

std::vector<std::string> Site::words(const Node& node) const {
  if (node.kind == Node::Kind::kScalar) return {word(node)};
  if (node.kind != Node::Kind::kList || node.items.empty()) mismatch(node);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    words.push_back(Site{file, join_path(path, std::to_string(i)), key}.word(node.items[i]));
  }
  return words;
}

}  // namespace hfta::engine::configuration
