#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/config/key_tables.hpp"
#include "search/stopping.hpp"

namespace hfta::engine::configuration {
namespace {

std::vector<std::string> rules_that_read(std::string_view field) {
  std::vector<std::string> names;
  for (const search::StoppingRule& rule : search::stopping_rules()) {
    if (reads(rule, field)) names.emplace_back(rule.name);
  }
  return names;
}

const char* early_terminate_sentence(std::string_view name) {
  if (name == "min_iter") return "The first band, in epochs; each further one has `eta` times as many.";
  if (name == "max_iter") return "In place of `min_iter`, with `s`: bands at `max_iter` / `eta`, / `eta`^2, and so on.";
  return "How many bands there are below `max_iter`.";
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
    const bool whole = std::holds_alternative<int search::StoppingOptions::*>(field.field) ||
                       std::holds_alternative<std::optional<int> search::StoppingOptions::*>(field.field);
    Key key{.path = std::string("early_stopping.") + field.name,
            .type = !field.choices.empty() ? KeyType::kChoice
                    : whole                ? KeyType::kInteger
                                           : KeyType::kNumber,
            .fallback = field.fallback != nullptr ? field.fallback : text_of(field, search::StoppingOptions()),
            .least = field.least,
            .most = field.most,
            .choices = field.choices,
            .only = rules_that_read(field.name),
            .sentence = field.sentence};
    if (key.fallback == "") key.fallback = std::nullopt;
    keys.push_back(std::move(key));
  }
  keys.push_back({.path = "early_terminate.type",
                  .type = KeyType::kChoice,
                  .choices = {"hyperband"},
                  .sentence = "As in a W&B sweep."});
  for (const char* name : {"min_iter", "max_iter", "s"}) {
    keys.push_back({.path = std::string("early_terminate.") + name,
                    .type = KeyType::kInteger,
                    .fallback = "none",
                    .least = 1,
                    .most = 1e6,
                    .sentence = early_terminate_sentence(name)});
  }
  keys.push_back({.path = "early_terminate.eta",
                  .type = KeyType::kInteger,
                  .fallback = "3",
                  .least = 2,
                  .most = 1e6,
                  .sentence = "About one in `eta` trials goes on at each band."});
  keys.push_back({.path = "early_terminate.strict",
                  .type = KeyType::kFlag,
                  .fallback = "false",
                  .sentence = "Both mean the same here, since a trial is judged at the band itself."});
  return keys;
}

}  // namespace hfta::engine::configuration
