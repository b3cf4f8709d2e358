#include "engine/config/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"
#include "engine/config/key_tables.hpp"
#include "engine/config/node.hpp"

namespace hfta::engine::configuration {
namespace {

std::string range_text(const Key& key) {
  const auto number = [](double value) {
    if (value == kMostInteger) return std::string("2^53");
    return std::floor(value) == value ? fmt::format("{:.0f}", value) : shortest(value);
  };
  const std::string low = (key.above ? "above " : "of at least ") + number(key.least);
  const std::string high = (key.below ? "below " : "at most ") + number(key.most);
  if (std::isinf(key.most)) return std::isinf(key.least) ? "" : " " + low;
  if (!key.above && !key.below) return fmt::format(" from {} to {}", number(key.least), number(key.most));
  return fmt::format(" {} and {}", low, high);
}

}  // namespace

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (auto part :
         {top_keys, stopping_keys, budget_keys, fold_keys, parameter_keys, model_keys, data_keys, adapter_keys,
          train_keys, loss_keys, optimizer_keys, phase_keys, schedule_keys, array_keys, memory_keys}) {
      for (Key& key : part()) all.push_back(std::move(key));
    }
    return all;
  }();
  return keys;
}

const Key* find_key(std::string_view path) {
  static const std::map<std::string, const Key*, std::less<>> by_path = [] {
    std::map<std::string, const Key*, std::less<>> map;
    for (const Key& key : all_keys()) map[key.path] = &key;
    return map;
  }();
  const auto found = by_path.find(path);
  return found == by_path.end() ? nullptr : found->second;
}

std::vector<std::string> keys_of(std::string_view section) {
  const std::string prefix = section.empty() ? std::string() : std::string(section) + ".";
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (!key.path.starts_with(prefix)) continue;
    std::string name = key.path.substr(prefix.size());
    if (!name.empty() && name.find('.') == std::string::npos) names.push_back(std::move(name));
  }
  return names;
}

std::string_view short_for(std::string_view path) {
  if (path == "folds") return "count";
  const bool named =
      path == "train.loss" || path.ends_with(".optimizer") || path == "train.schedule" || path == "early_stopping";
  return named ? "name" : "";
}

std::string wanted_text(const Key& key) {
  if (key.wanted != nullptr) return key.wanted;
  switch (key.type) {
    case KeyType::kSection: {
      const std::string_view inner = short_for(key.path);
      if (inner.empty()) return "a map";
      return wanted_text(*find_key(join_path(key.path, inner))) +
             (key.path == "early_stopping" ? ", or a map, or a list of them" : ", or a map");
    }
    case KeyType::kChoice:
      return (key.choices.size() > 1 ? "one of " : "") + join(key.choices);
    case KeyType::kInteger:
      return "an integer" + range_text(key);
    case KeyType::kNumber:
      return "a number" + range_text(key);
    case KeyType::kFlag:
      return "true or false";
    case KeyType::kWord:
    case KeyType::kOther:
      break;
  }
  return "a word";
}

}  // namespace hfta::engine::configuration
