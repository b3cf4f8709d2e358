#pragma once
/// Numbers of a narrow type in the type that is computed in.

#include <cstdint>

#include "fusion/simd/narrow.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// to[i] = from[i], exactly; in double a denormal number is zero where the processor flushes such. Stored: simd::Half,
/// simd::Bfloat16, std::int8_t, std::uint8_t; T: float, double.
template <typename Stored, typename T>
void widen(Team* team, const Stored* from, T* to, std::int64_t n);

}  // namespace hfta::fusion::cpu
