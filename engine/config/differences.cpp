#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config.hpp"
#include "engine/config/node.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

std::string leaf_text(const json& value) {
  if (value.is_null()) return "null";
  return value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

void flatten(const json& value, const std::string& path, std::map<std::string, std::string>& leaves) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items()) flatten(inner, configuration::join_path(path, key), leaves);
  } else if (value.is_array() && !value.empty()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      flatten(value[i], configuration::join_path(path, std::to_string(i)), leaves);
    }
  } else {
    leaves[path] = leaf_text(value);
  }
}

std::map<std::string, std::string> leaves_of(const std::string& text) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) throw Error(ErrorKind::kStorage, "the stored config: found text that is not JSON");
  std::map<std::string, std::string> leaves;
  flatten(value, "", leaves);
  return leaves;
}

}  // namespace

std::vector<std::string> config_differences(const std::string& stored_json, const std::string& now_json) {
  const auto stored = leaves_of(stored_json);
  const auto now = leaves_of(now_json);
  std::vector<std::string> lines;
  const auto text_at = [](const auto& leaves, const std::string& path) {
    const auto found = leaves.find(path);
    return found == leaves.end() ? std::string("nothing") : found->second;
  };
  auto paths = stored;
  paths.insert(now.begin(), now.end());
  for (const auto& [path, text] : paths) {
    const std::string before = text_at(stored, path), after = text_at(now, path);
    if (before == after) continue;
    lines.push_back(fmt::format("{}: found {}, the study has {}", printable(path), after, before));
  }
  return lines;
}

}  // namespace hfta::engine
