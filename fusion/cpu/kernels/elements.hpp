#pragma once
/// Loops over elements that lie without gaps, shared by a team and compiled for each instruction set.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fusion/simd/multiversion.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// loops(first, count) for stretches of n elements; null: the caller does all. `loops` is inlined into what
/// multiversion() compiles.
template <typename Loops>
void share_elements(Team* team, std::int64_t n, const Loops& loops) {
  constexpr std::int64_t kUnit = 16;  // stretches begin where cache lines do
  share(team, stretches_of(n, 1, kUnit),
        [&](std::int64_t first, std::int64_t count, int) { simd::multiversion([&] { loops(first, count); }); });
}

/// Into how many parts a sum of `size` elements is divided, each with elements of its own, which add_parts() joins: a
/// power of two, at most `most` and at least 1. Enough that a few threads, mostly powers of two, have as much to do
/// each; few enough that all of them, 2 MiB of float, stay in the last cache.
[[nodiscard]] inline std::int64_t parts_of_sum(std::int64_t most, std::int64_t size) {
  constexpr std::int64_t kMost = 8, kElements = 524288;
  const std::int64_t wanted = std::max<std::int64_t>(std::min({kMost, most, kElements / size}), 1);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
}

/// to += each of `parts`, [count, n], in order.
template <typename T>
void add_parts(Team* team, T* to, const T* parts, std::int64_t n, std::int64_t count) {
  if (count <= 0) return;
  share_elements(
      team, n, [=](std::int64_t first, std::int64_t size) __attribute__((always_inline)) {
        for (std::int64_t part = 0; part < count; ++part) {
          const T* const from = parts + part * n + first;
          for (std::int64_t i = 0; i < size; ++i) to[first + i] += from[i];
        }
      });
}

}  // namespace hfta::fusion::cpu
