#pragma once
/// Numbers as whole texts.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace hfta {

/// The number that the whole of `text` is, as std::from_chars reads it: no blanks, no leading '+'. nullopt if it is
/// anything else, or out of the type's range.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace hfta
