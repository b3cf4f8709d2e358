#include <fmt/format.h>

#include <string>

#include "engine/config/key_tables.hpp"
#include "search/methods.hpp"

namespace hfta::engine::configuration {

namespace {

Key sampler_key(const search::Method& method) {
  Key key{.path = fmt::format("{}.sampler", method.name),
          .type = KeyType::kChoice,
          .fallback = search::MethodOptions().sampler,
          .sentence = "The method that chooses configurations; its settings stand in a section of their own."};
  for (const search::Method& other : search::methods()) {
    if (lends_sampler(other)) key.choices.emplace_back(other.name);
  }
  return key;
}

}  // namespace

std::vector<Key> method_keys() {
  std::vector<Key> keys = {{.path = "method", .type = KeyType::kChoice, .fallback = "auto"}};
  keys[0].choices.emplace_back("auto");
  keys[0].sentence =
      "auto: one of the others, by space, budget and width, and `early_stopping` where that is not given";
  for (const search::Method& method : search::methods()) {
    keys[0].choices.emplace_back(method.name);
    keys[0].sentence += "; " + std::string(method.name) + ": " + method.sentence;
  }
  keys[0].sentence += ".";
  for (const search::Method& method : search::methods()) {
    if (method.fields.empty()) continue;
    keys.push_back({.path = method.name,
                    .type = KeyType::kSection,
                    .fallback = "",
                    .sentence = fmt::format("Settings of `method: {}`.", method.name)});
    if (method.takes_sampler) keys.push_back(sampler_key(method));
    search::MethodOptions defaults;
    for (const search::MethodField& field : method.fields) {
      keys.push_back({.path = fmt::format("{}.{}", method.name, field.name),
                      .type = KeyType::kInteger,
                      .fallback = field.fallback != nullptr ? field.fallback : std::to_string(field.of(defaults)),
                      .least = static_cast<double>(field.least),
                      .most = static_cast<double>(field.most),
                      .sentence = field.sentence});
    }
  }
  return keys;
}

}  // namespace hfta::engine::configuration
