#pragma once
/// The typed values of a small YAML file, beside a study's config: a machine's topology, a cluster, a graph of costs.
/// Internal to engine/config, engine/topology and engine/planner.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// Every complaint is an Error{kConfig} "file:line: key: found ..., wanted ...".
class TypedFile {
 public:
  /// `name` is made printable.
  explicit TypedFile(std::string_view name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[noreturn]] void wrong(const Node& node, const std::string& key, const std::string& wanted) const;
  /// The whole file, which must be a map: else the message says `wanted`.
  [[nodiscard]] Node root(std::string_view text, const std::string& wanted) const;
  [[nodiscard]] int integer(const Node& node, const std::string& key, int least, int most) const;
  /// The number of a node; never NaN.
  [[nodiscard]] double number(const Node& node, const std::string& key, double least, double most,
                              const std::string& unit) const;
  /// The number of a map's key; `fallback` if the key is not there.
  [[nodiscard]] double number_of(const Node& map, const std::string& key, double fallback, double least, double most,
                                 const std::string& unit) const;
  [[nodiscard]] const std::vector<Node>& list(const Node& node, const std::string& key,
                                              const std::string& wanted) const;
  void check_keys(const Node& map, std::initializer_list<const char*> known) const;

 private:
  std::string name_;
};

/// A file's bytes, at most kMostBytes. Throws Error{kConfig} if it cannot be read.
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

}  // namespace hfta::engine::configuration
