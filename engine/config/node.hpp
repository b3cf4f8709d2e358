#pragma once
/// A YAML file's text as a tree: what the typed readers see. Internal to engine/config and engine/topology.

#include <string>
#include <string_view>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine::configuration {

struct Entry;

/// One value of the tree: a scalar, a list or a map that keeps its order. A value type.
struct Node {
  enum class Kind { kScalar, kList, kMap };
  Kind kind = Kind::kScalar;

  std::string text;           ///< A scalar as it was written (without quotes): "1e-4", "${lr}".
  bool quoted = false;        ///< Quoted scalars are words, whatever they look like.
  trials::ParamValue value;   ///< The scalar's meaning; monostate: null.
  bool out_of_range = false;  ///< A number that no double holds (1e400); `value` is then a word.
  std::string from;           ///< The parameter that `value` was taken from; "" if it stands in the config.

  std::vector<Node> items;     ///< kList
  std::vector<Entry> entries;  ///< kMap: keys are distinct.

  int line = 1;        ///< 1-based, where the value (for a collection: its key) stands.
  std::string origin;  ///< "--set train.epochs" or "--width" for what was not in the file; "" otherwise.

  [[nodiscard]] bool is_null() const { return kind == Kind::kScalar && value.index() == 0 && !out_of_range; }
  /// The value under a key of a map; nullptr if there is none, or if this is no map.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  int line = 1;  ///< Line of the key, 1-based.
  Node value;
};

/// A scalar as if it stood in a config: resolved unless quoted.
[[nodiscard]] Node scalar_node(std::string text, bool quoted, int line);

/// The node as messages show it: "'abc'", "1e-4", "a list", "nothing", "0.5 (from ${lr})".
[[nodiscard]] std::string found_text(const Node& node);

/// Throws Error{kConfig}: "file:line: path: message", or "--set key: message" for what the command line gave.
[[noreturn]] void fail_at(const std::string& file, const Node& node, const std::string& path,
                          const std::string& message);

/// "a.b"; no dot after an empty path.
[[nodiscard]] std::string join_path(const std::string& path, std::string_view key);

}  // namespace hfta::engine::configuration
