#include <algorithm>
#include <string>
#include <string_view>

#include "engine/config/key_tables.hpp"
#include "search/stopping.hpp"

namespace hfta::engine::configuration {
namespace {

std::vector<std::string> rules_that_read(std::string_view field) {
  std::vector<std::string> names;
  for (const search::StoppingRule& rule : search::stopping_rules()) {
    if (std::count(rule.reads.begin(), rule.reads.end(), field) > 0) names.emplace_back(rule.name);
  }
  return names;
}

}  // namespace

std::vector<Key> stopping_keys() {
  std::vector<Key> keys = {{.path = "early_stopping.name", .type = KeyType::kChoice, .fallback = "none"}};
  std::string& sentence = keys[0].sentence;
  for (const search::StoppingRule& rule : search::stopping_rules()) {
    keys[0].choices.emplace_back(rule.name);
    sentence += (sentence.empty() ? "" : "; ") + std::string(rule.name) + ": " + rule.sentence;
  }
  sentence += ".";
  for (const search::StoppingField& field : search::stopping_fields()) {
    keys.push_back({.path = std::string("early_stopping.") + field.name,
                    .type = KeyType::kInteger,
                    .fallback = std::to_string(search::StoppingOptions().*field.field),
                    .least = static_cast<double>(field.least),
                    .most = static_cast<double>(field.most),
                    .only = rules_that_read(field.name),
                    .sentence = field.sentence});
  }
  return keys;
}

}  // namespace hfta::engine::configuration
