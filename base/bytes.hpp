#pragma once
/// Amounts of memory in words.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hfta {

/// The bytes that "8GiB", "512 MiB", "1.5GB" or "1000" say: a number of at least 0 and B, KiB, MiB, GiB, TiB (powers of
/// 1024) or KB, MB, GB, TB (powers of 1000), in any case; without a unit, bytes. Parts of a byte are dropped. nullopt
/// for anything else, and beyond what a std::int64_t holds.
[[nodiscard]] std::optional<std::int64_t> bytes_from(std::string_view text);

/// "1.5 GiB", "12.0 MiB", "900 bytes": of the largest unit, a power of 1024, that is not below 1, with one decimal.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

}  // namespace hfta
