#pragma once
/// JSON of an untrusted file: every access checks the type, and its error says what was found and what was wanted.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hfta::fusion::pt2 {

using Json = nlohmann::json;

/// A piece of JSON and where it stands. The document must outlive it.
class Reader {
 public:
  Reader(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

  [[nodiscard]] const Json& json() const { return *json_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Throws Error{kConfig}: "`place`: `what`".
  [[noreturn]] void fail(const std::string& what) const;

  /// A member that must be there.
  [[nodiscard]] Reader operator[](const std::string& key) const;
  /// Whether it is an object with such a member that is not null.
  [[nodiscard]] bool has(const std::string& key) const;
  /// This piece, with `place` in its messages.
  [[nodiscard]] Reader at(std::string place) const { return {*json_, std::move(place)}; }

  [[nodiscard]] std::int64_t integer() const;
  /// Infinity and NaN are words in such files.
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] const std::string& text() const;
  /// Elements of a list.
  [[nodiscard]] std::vector<Reader> list() const;
  /// Members of an object, in alphabetical order.
  [[nodiscard]] std::vector<std::pair<std::string, Reader>> members() const;

 private:
  [[noreturn]] void wanted(const char* kind) const;

  const Json* json_;
  std::string place_;
};

/// Throws Error{kConfig} that begins with `place`.
[[nodiscard]] Json parse_json(std::span<const std::byte> text, const std::string& place);

}  // namespace hfta::fusion::pt2
