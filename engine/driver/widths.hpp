#pragma once
/// How wide arrays are: pure arithmetic on counts of trials.

#include <optional>

namespace hfta::engine {

/// Slots of a new array for `waiting` trials of one partition, at most `limit` side by side. Widths come out even: nine
/// trials at a limit of eight make arrays of five and four, not of eight and one. `parts`: into how many arrays the
/// trials are to be divided at least, because that many devices are free. Result in 1..limit; REQUIRES all three >= 1.
[[nodiscard]] int even_width(int waiting, int limit, int parts);

/// The width that an array of `width` slots should change to when it could fill `wanted` of them (trials in it and
/// trials ready to join, >= 1); nullopt where a change saves less than it costs. An empty slot costs nearly what a full
/// one does, a change costs new shapes throughout: it pays from a quarter of the width on.
[[nodiscard]] std::optional<int> better_width(int width, int wanted, int limit);

}  // namespace hfta::engine
