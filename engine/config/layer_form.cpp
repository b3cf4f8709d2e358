#include "engine/config/layer_form.hpp"

#include <algorithm>

#include "fusion/layers.hpp"

namespace hfta::engine::configuration {
namespace {

bool is_kind(const std::string& word) {
  const std::vector<std::string>& kinds = fusion::layer_kinds();
  return std::find(kinds.begin(), kinds.end(), word) != kinds.end();
}

bool is_argument(const std::string& kind, const std::string& word) {
  const auto& args = fusion::layer_args(kind);
  return std::any_of(args.begin(), args.end(), [&](const fusion::LayerArgInfo& arg) { return arg.name == word; });
}

const Entry* kind_entry(const Node& item) {
  const Entry* first = nullptr;
  for (const Entry& entry : item.entries) {
    if (is_kind(entry.key)) return &entry;
    if (first == nullptr && entry.key != "name") first = &entry;
  }
  return first;
}

}  // namespace

LayerForm layer_form(const Node& item) {
  LayerForm form;
  form.kind = kind_entry(item);
  if (form.kind == nullptr) return form;
  const Node& arguments = form.kind->value;
  if (arguments.kind == Node::Kind::kScalar && !(arguments.is_null() && arguments.from.empty())) {
    form.positional.push_back(&arguments);
  }
  for (const Node& argument : arguments.items) form.positional.push_back(&argument);
  for (const Entry& entry : arguments.entries) form.named.push_back(&entry);
  for (const Entry& entry : item.entries) {
    if (&entry == form.kind) continue;
    if (is_kind(entry.key) && !is_argument(form.kind->key, entry.key)) form.second_kind = &entry;
    form.named.push_back(&entry);
  }
  return form;
}

}  // namespace hfta::engine::configuration
