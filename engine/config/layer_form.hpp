#pragma once
/// The forms in which a layer can be written. Internal to engine/config.

#include <string>
#include <utility>
#include <vector>

#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// One item of `layers:`, taken apart: `relu`, `{linear: [64, 10]}`, `{conv2d: [1, 16, 3], padding: same, name: stem}`,
/// `{conv2d: {in_channels: 1, ...}}`. Pointers point into the item.
struct LayerForm {
  const Entry* kind = nullptr;          ///< The entry whose key is the kind; nullptr: the item is the kind itself.
  const Entry* second_kind = nullptr;   ///< A further key that is a kind, and no argument of the first: a mistake.
  std::vector<const Node*> positional;  ///< Values under the kind.
  std::vector<const Entry*> named;      ///< Entries under the kind or beside it, in order; `name` among them.
};

/// Takes an item apart. The kind of a map is its first key that is a known kind, else its first key but `name`.
[[nodiscard]] LayerForm layer_form(const Node& item);

}  // namespace hfta::engine::configuration
