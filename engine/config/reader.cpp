#include "engine/config/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trials/json.hpp"

namespace hfta::engine::configuration {
namespace {

using nlohmann::json;

const Node& empty_map() {
  static const Node map = [] {
    Node node;
    node.kind = Node::Kind::kMap;
    return node;
  }();
  return map;
}

bool has_any(const std::vector<std::string>& names, const std::vector<std::string>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const std::string& name) { return std::count(names.begin(), names.end(), name) > 0; });
}

// The value as recorded: "${name}" for one that is searched, whose results depend on the space and not on one value.
json recorded(const Node& node, json value) { return node.from.empty() ? std::move(value) : json(node.text); }

}  // namespace

json to_json(const Node& node) {
  if (node.kind == Node::Kind::kScalar) return recorded(node, trials::value_json(node.value));
  if (node.kind == Node::Kind::kList) {
    json list = json::array();
    for (const Node& item : node.items) list.push_back(to_json(item));
    return list;
  }
  json map = json::object();
  for (const Entry& entry : node.entries) map[entry.key] = to_json(entry.value);
  return map;
}

Reader::Reader(const std::string& file, const Node& map, std::string path, std::string table, json& record)
    : file_(file), map_(map), path_(std::move(path)), table_(std::move(table)), record_(record) {
  if (map.kind != Node::Kind::kMap) {
    const Key* key = find_key(table_);
    const std::string wanted = key == nullptr || table_.empty() ? "a map" : wanted_text(*key);
    fail_at(file_, map, path_, fmt::format("found {}, wanted {}", found_text(map), wanted));
  }
  for (const Entry& entry : map.entries) {
    const std::string row = join_path(table_, entry.key);
    if (entry.key.find('.') == std::string::npos && find_key(row) != nullptr) continue;
    Node place = entry.value;
    place.line = entry.line;
    const std::string foreign = foreign_key_message(row);
    fail_at(file_, place, join_path(path_, entry.key),
            foreign.empty()
                ? "found an unknown key, wanted one of this section's" + suggestion(entry.key, keys_of(table_))
                : foreign);
  }
  if (!record_.is_object()) record_ = json::object();
}

void Reader::restrict_to(const std::string& active, const std::vector<std::string>& possible) {
  for (const Entry& entry : map_.entries) {
    const Key& key = *find_key(join_path(table_, entry.key));
    if (key.only.empty() || has_any(key.only, {active})) continue;
    if (!has_any(key.only, possible)) {
      std::vector<std::string> valid;
      for (const std::string& name : keys_of(table_)) {
        const Key& other = *find_key(join_path(table_, name));
        if (other.only.empty() || has_any(other.only, possible)) valid.push_back(name);
      }
      fail(entry.key, fmt::format("found a key of {}, wanted a key of {}: {}", join(key.only), active, join(valid)));
    }
    record_[entry.key] = to_json(entry.value);
  }
}

Site Reader::site(std::string_view key) const {
  const Key* row = find_key(join_path(table_, key));
  if (row == nullptr) {
    throw Error(ErrorKind::kInternal, fmt::format("config key {} is not in the table", join_path(table_, key)));
  }
  return {file_, join_path(path_, key), *row};
}

void Reader::fail(std::string_view key, const std::string& message) const {
  const Node* node = find(key);
  fail_at(file_, node != nullptr ? *node : map_, key.empty() ? path_ : join_path(path_, key), message);
}

const Node* Reader::present(std::string_view key) const {
  const Node* node = find(key);
  return node == nullptr || node->is_null() ? nullptr : node;
}

Node Reader::given_or_default(std::string_view key) const {
  if (const Node* node = find(key)) return *node;
  const Key& row = site(key).key;
  if (!row.fallback) fail(key, "found nothing, wanted " + wanted_text(row));
  return scalar_node(*row.fallback, false, map_.line);
}

std::int64_t Reader::integer(std::string_view key) {
  const Node node = given_or_default(key);
  const std::int64_t value = site(key).integer(node);
  record(key, recorded(node, value));
  return value;
}

double Reader::number(std::string_view key) {
  const Node node = given_or_default(key);
  const double value = site(key).number(node);
  record(key, recorded(node, value));
  return value;
}

bool Reader::flag(std::string_view key) {
  const Node node = given_or_default(key);
  const bool value = site(key).flag(node);
  record(key, recorded(node, value));
  return value;
}

std::string Reader::word(std::string_view key) {
  const Node node = given_or_default(key);
  std::string value = site(key).word(node);
  record(key, recorded(node, value));
  return value;
}

std::optional<std::int64_t> Reader::optional_integer(std::string_view key) {
  return present(key) != nullptr ? std::optional(integer(key)) : std::nullopt;
}

std::optional<double> Reader::optional_number(std::string_view key) {
  if (present(key) != nullptr) return number(key);
  if (const Node* node = find(key)) record(key, recorded(*node, nullptr));  // a searched null
  return std::nullopt;
}

std::optional<std::string> Reader::optional_word(std::string_view key) {
  return present(key) != nullptr ? std::optional(word(key)) : std::nullopt;
}

double Reader::number_or(std::string_view key, double fallback) {
  if (has(key)) return number(key);
  record(key, fallback);
  return fallback;
}

std::optional<std::int64_t> Reader::integer_or_auto(std::string_view key) {
  const Node node = given_or_default(key);
  const auto* word = std::get_if<std::string>(&node.value);
  if (node.kind == Node::Kind::kScalar && word != nullptr && *word == "auto") return std::nullopt;
  return site(key).integer(node);
}

Reader Reader::section(std::string_view key) {
  const Site here = site(key);
  const Node* node = find(key);
  if (node == nullptr && !here.key.fallback) fail(key, "found nothing, wanted " + wanted_text(here.key));
  return {file_, node != nullptr ? *node : empty_map(), here.path, here.key.path, record_[std::string(key)]};
}

json& Reader::record(std::string_view key, json value) { return record_[std::string(key)] = std::move(value); }

}  // namespace hfta::engine::configuration
