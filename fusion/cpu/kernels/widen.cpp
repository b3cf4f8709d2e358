#include "fusion/cpu/kernels/widen.hpp"

#include "fusion/cpu/kernels/elements.hpp"

namespace hfta::fusion::cpu {
namespace {

template <typename Stored, typename T>
inline __attribute__((always_inline)) void widen_part(const Stored* __restrict from, T* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(simd::number_of(from[i]));
}

}  // namespace

template <typename Stored, typename T>
void widen(Team* team, const Stored* from, T* to, std::int64_t n) {
  share_elements(team, n, [&](std::int64_t first, std::int64_t count) { widen_part(from + first, to + first, count); });
}

template void widen(Team*, const simd::Half*, float*, std::int64_t);
template void widen(Team*, const simd::Half*, double*, std::int64_t);
template void widen(Team*, const simd::Bfloat16*, float*, std::int64_t);
template void widen(Team*, const simd::Bfloat16*, double*, std::int64_t);
template void widen(Team*, const std::int8_t*, float*, std::int64_t);
template void widen(Team*, const std::int8_t*, double*, std::int64_t);
template void widen(Team*, const std::uint8_t*, float*, std::int64_t);
template void widen(Team*, const std::uint8_t*, double*, std::int64_t);

}  // namespace hfta::fusion::cpu
