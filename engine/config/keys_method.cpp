#include <fmt/format.h>

#include <string>

#include "engine/config/key_tables.hpp"
#include "search/methods.hpp"

namespace hfta::engine::configuration {

std::vector<Key> method_keys() {
  std::vector<Key> keys = {{.path = "method", .type = KeyType::kChoice, .fallback = "random"}};
  for (const search::Method& method : search::methods()) {
    keys[0].choices.emplace_back(method.name);
    keys[0].sentence += (keys[0].sentence.empty() ? "" : "; ") + std::string(method.name) + ": " + method.sentence;
  }
  keys[0].sentence += ".";
  for (const search::Method& method : search::methods()) {
    if (method.fields.empty()) continue;
    keys.push_back({.path = method.name,
                    .type = KeyType::kSection,
                    .fallback = "",
                    .sentence = fmt::format("Settings of `method: {}`.", method.name)});
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
