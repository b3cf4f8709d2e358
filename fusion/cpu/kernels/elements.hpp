#pragma once
/// Loops over elements that lie without gaps, shared by a team and compiled for each instruction set.

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

}  // namespace hfta::fusion::cpu
