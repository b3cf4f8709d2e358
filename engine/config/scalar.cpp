#include "engine/config/scalar.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

namespace hfta::engine::configuration {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return n;
}

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// 0o17 and 0x1f have no sign in the core schema, and no double's digits: beyond 64 bits they are out of range.
std::optional<Resolved> radix_integer(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : text.starts_with("0o") ? 8 : 0;
  if (base == 0 || text.size() < 3) return std::nullopt;
  const std::string_view valid = base == 16 ? "0123456789abcdefABCDEF" : "01234567";
  const std::string_view number = text.substr(2);
  if (number.find_first_not_of(valid) != std::string_view::npos) return std::nullopt;
  if (const auto value = parse_integer(number, base)) return Resolved{*value};
  return Resolved{std::string(text), true};
}

// [-+]? ( \.[0-9]+ | [0-9]+ (\.[0-9]*)? ) ( [eE] [-+]? [0-9]+ )?
bool looks_like_number(std::string_view text) {
  const std::size_t whole = digits(text);
  text.remove_prefix(whole);
  if (!text.empty() && text[0] == '.') {
    const std::size_t fraction = digits(text.substr(1));
    if (whole == 0 && fraction == 0) return false;
    text.remove_prefix(1 + fraction);
  } else if (whole == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && digits(text) == text.size();
}

Resolved decimal_number(std::string_view plain, std::string_view unsigned_text, bool negative) {
  const std::string text = (negative ? "-" : "") + std::string(unsigned_text);
  if (digits(unsigned_text) == unsigned_text.size()) {
    if (const auto value = parse_integer(text, 10)) return {*value};
  }
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return {std::string(plain), true};
  return {value == 0 ? 0.0 : value};  // a negative zero means nothing here
}

}  // namespace

Resolved resolve(std::string_view plain) {
  if (any_of(plain, {"", "~", "null", "Null", "NULL"})) return {};
  if (any_of(plain, {"true", "True", "TRUE"})) return {true};
  if (any_of(plain, {"false", "False", "FALSE"})) return {false};
  if (any_of(plain, {".nan", ".NaN", ".NAN"})) return {std::numeric_limits<double>::quiet_NaN()};
  if (const auto integer = radix_integer(plain)) return *integer;
  const bool negative = plain[0] == '-';
  const std::string_view rest = negative || plain[0] == '+' ? plain.substr(1) : plain;
  if (any_of(rest, {".inf", ".Inf", ".INF"})) {
    const double infinity = std::numeric_limits<double>::infinity();
    return {negative ? -infinity : infinity};
  }
  if (looks_like_number(rest)) return decimal_number(plain, rest, negative);
  return {std::string(plain)};
}

}  // namespace hfta::engine::configuration
