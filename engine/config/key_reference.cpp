#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "engine/config/keys.hpp"
#include "search/methods.hpp"

namespace hfta::engine::configuration {
namespace {

// A cell of a Markdown table.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string default_cell(const Key& key) {
  if (!key.fallback) return "*required*";
  return *key.fallback;
}

std::string searched_cell(const Key& key) {
  switch (key.searched) {
    case Searched::kNo:
      return "no";
    case Searched::kPerSlot:
    case Searched::kPadded:
      return "per slot";
    case Searched::kShape:
      return "splits arrays";
  }
  return "";
}

// The anchor of a section's heading.
std::string anchor(std::string section) {
  std::erase_if(section, [](char c) { return c == '.' || c == '*'; });
  return "#" + section;
}

// One row for all keys that repeat another section.
std::string repeated_row(const std::string& names, const Key& key) {
  return fmt::format("| {} | as in [`{}`]({}) | {} | {} | The same as there. |\n", names, key.repeats,
                     anchor(key.repeats), cell(default_cell(key)), searched_cell(key));
}

std::string section_table(const std::string& section) {
  std::string out = fmt::format("\n## {}\n\n", section.empty() ? "Top level" : "`" + section + "`");
  out += "| key | value | default | `${name}` | meaning |\n|---|---|---|---|---|\n";
  std::vector<std::string> repeated;
  const Key* repeating = nullptr;
  for (const std::string& name : keys_of(section)) {
    const Key& key = *find_key(section.empty() ? name : section + "." + name);
    if (!key.repeats.empty()) {
      repeated.push_back(fmt::format("`{}`", name));
      repeating = &key;
      continue;
    }
    const std::string only = key.only.empty() ? "" : fmt::format(" Only of {}.", join(key.only));
    out += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", name, cell(wanted_text(key)), cell(default_cell(key)),
                       searched_cell(key), cell(key.sentence), only);
  }
  if (repeating != nullptr) out += repeated_row(join(repeated), *repeating);
  return out;
}

}  // namespace

std::string key_reference() {
  std::string out;
  out += section_table("");
  for (const search::Method& method : search::methods()) {
    if (!method.fields.empty()) out += section_table(method.name);
  }
  for (const char* section :
       {"early_stopping", "early_terminate", "budget", "warm_start", "folds", "metric", "parameters.*", "model",
        "model.adapters", "model.adapters.lora", "data", "train", "train.loss", "train.optimizer",
        "train.optimizer.groups.*", "train.phases.*", "train.schedule", "array", "memory"}) {
    out += section_table(section);
  }
  return out;
}

}  // namespace hfta::engine::configuration
