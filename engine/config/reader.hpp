#pragma once
/// Typed reading of one section of a config. Internal to engine/config.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys.hpp"
#include "engine/config/node.hpp"

namespace hfta::engine::configuration {

/// The place of a value, for errors.
struct Site {
  const std::string& file;
  std::string path;  ///< "train.optimizer.betas.0"
  const Key& key;

  /// Throws "found ..., wanted ..." for a value that is not what the key wants.
  [[noreturn]] void mismatch(const Node& node) const;
  [[noreturn]] void fail(const Node& node, const std::string& message) const { fail_at(file, node, path, message); }
  /// The node's value, checked against the key's type, bounds and choices.
  [[nodiscard]] std::int64_t integer(const Node& node) const;
  [[nodiscard]] double number(const Node& node) const;
  [[nodiscard]] bool flag(const Node& node) const;
  [[nodiscard]] std::string word(const Node& node) const;
  /// A list of words, or one word.
  [[nodiscard]] std::vector<std::string> words(const Node& node) const;
};

/// A map of the config, read key by key. Every value read, given or default, is also recorded in canonical form: what
/// is searched as "${name}". Refers to its arguments; use it while they live.
class Reader {
 public:
  /// `table`: the section's path in the table of keys ("parameters.*" where `path` is "parameters.lr").
  /// Throws if `map` is not a map, or has a key that the table does not have.
  Reader(const std::string& file, const Node& map, std::string path, std::string table, nlohmann::json& record);

  /// Restricts a section whose keys depend on a kind (of optimizer, ...): `active` is this trial's kind, `possible` are
  /// all that the study may give it. Throws for a key that none of them has. Keys of the others are recorded only.
  void restrict_to(const std::string& active, const std::vector<std::string>& possible);

  [[nodiscard]] bool has(std::string_view key) const { return map_.find(key) != nullptr; }
  [[nodiscard]] const Node* find(std::string_view key) const { return map_.find(key); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Site site(std::string_view key) const;

  /// The value, or the table's default. Throws where it is required and absent.
  [[nodiscard]] std::int64_t integer(std::string_view key);
  [[nodiscard]] double number(std::string_view key);
  [[nodiscard]] bool flag(std::string_view key);
  [[nodiscard]] std::string word(std::string_view key);
  /// nullopt if absent or null.
  [[nodiscard]] std::optional<std::int64_t> optional_integer(std::string_view key);
  [[nodiscard]] std::optional<double> optional_number(std::string_view key);
  [[nodiscard]] std::optional<std::string> optional_word(std::string_view key);
  /// The number, or `fallback` if it is absent: a default that depends on other keys.
  [[nodiscard]] double number_or(std::string_view key, double fallback);
  /// The integer; nullopt for "auto".
  [[nodiscard]] std::optional<std::int64_t> integer_or_auto(std::string_view key);
  /// A section within this one; an empty one if it is absent and has a default.
  [[nodiscard]] Reader section(std::string_view key);

  /// Throws "file:line: path.key: message", at the key or, if it is absent, at this section. "" is the section itself.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  /// Records a value that is read by other means. Returns the value in the record.
  nlohmann::json& record(std::string_view key, nlohmann::json value);

 private:
  [[nodiscard]] Node given_or_default(std::string_view key) const;
  [[nodiscard]] const Node* present(std::string_view key) const;

  const std::string& file_;
  const Node& map_;
  std::string path_, table_;
  nlohmann::json& record_;
};

/// The JSON of a scalar, list or map as it stands in the config.
[[nodiscard]] nlohmann::json to_json(const Node& node);

}  // namespace hfta::engine::configuration
