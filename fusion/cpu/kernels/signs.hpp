#pragma once
/// Signs of a relu's outputs, a bit each that is set where the output is not 0: all that its backward needs.

#include <cstdint>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// Bit i of `words` [mask_words(n)] says whether y[i] is not 0 (codec/nonzero.hpp). `team`: who shares the work; null:
/// the caller alone.
void pack_signs(Team* team, const float* y, std::uint32_t* words, std::int64_t n);
/// dy[i] becomes 0 where bit i is not set.
void mask_by_signs(Team* team, float* dy, const std::uint32_t* words, std::int64_t n);

}  // namespace hfta::fusion::cpu
