#pragma once
/// Widths of arrays: pure arithmetic on counts of trials.

#include <optional>

namespace hfta::engine {

/// The width of a new array for `waiting` trials of one partition, at most `limit`. Widths are balanced: nine trials at
/// a limit of eight make arrays of five and four, not of eight and one. `parts`: the least number of arrays that the
/// trials are divided into, because that many devices are free. Result in 1..limit; REQUIRES all three >= 1.
[[nodiscard]] int even_width(int waiting, int limit, int parts);

/// The width that an array of `width` slots should change to when it could fill `wanted` of them (trials in it and
/// trials ready to join, >= 1); nullopt if a change saves less than it costs. An empty slot costs nearly as
/// much as a full one, and a change means new shapes everywhere; it pays off from a quarter of the width on.
[[nodiscard]] std::optional<int> better_width(int width, int wanted, int limit);

}  // namespace hfta::engine
