#pragma once
/// Arithmetic on integers that says so where a result does not fit, instead of wrapping or being undefined.

#include <cstdint>
#include <limits>
#include <optional>

namespace hfta {

[[nodiscard]] inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}

[[nodiscard]] inline std::optional<std::int64_t> checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}

[[nodiscard]] inline std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}

/// The int after `a`; nothing where `a` is the last.
[[nodiscard]] inline std::optional<int> checked_next(int a) {
  int out = 0;
  return __builtin_add_overflow(a, 1, &out) ? std::nullopt : std::optional(out);
}

/// The integer that a double is exactly; nothing for fractions, NaN and what lies beyond 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> exact_integer(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(value >= -kEnd && value < kEnd)) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? std::optional(whole) : std::nullopt;
}

/// Python's a // b: rounds down. Nothing where b is 0, or the result does not fit.
[[nodiscard]] inline std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == std::numeric_limits<std::int64_t>::min() && b == -1)) return std::nullopt;
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// Python's a % b: has b's sign. Nothing where b is 0.
[[nodiscard]] inline std::optional<std::int64_t> floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// base ** exponent for an exponent that is not negative. Nothing where the result does not fit.
[[nodiscard]] inline std::optional<std::int64_t> checked_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::optional<std::int64_t> out = 1;
  for (std::int64_t i = 0; i < exponent && out; ++i) out = checked_mul(*out, base);  // at most 63 turns
  return out;
}

}  // namespace hfta
