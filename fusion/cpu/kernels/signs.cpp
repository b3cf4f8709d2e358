#include "fusion/cpu/kernels/signs.hpp"

#include <algorithm>

#include "fusion/codec/nonzero.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kBits = 32;

inline __attribute__((always_inline)) void mask(float* dy, const std::uint32_t* words, std::int64_t n) {
  for (std::int64_t first = 0; first < n; first += kBits) {
    const std::int64_t count = std::min(kBits, n - first);
    const std::uint32_t word = words[first / kBits];
    for (std::int64_t k = 0; k < count; ++k) dy[first + k] = (word >> k & 1U) != 0 ? dy[first + k] : 0.0F;
  }
}

// Whole words.
template <typename Work>
void share_words(Team* team, std::int64_t n, const Work& work) {
  share(team, stretches_of(n, 1, kBits), [&](std::int64_t first, std::int64_t count, int) { work(first, count); });
}

}  // namespace

void pack_signs(Team* team, const float* y, std::uint32_t* words, std::int64_t n) {
  share_words(team, n, [&](std::int64_t first, std::int64_t count) {
    mask_nonzero({y + first, static_cast<std::size_t>(count)}, words + first / kBits);
  });
}

void mask_by_signs(Team* team, float* dy, const std::uint32_t* words, std::int64_t n) {
  share_words(team, n, [&](std::int64_t first, std::int64_t count) {
    simd::multiversion([&] { mask(dy + first, words + first / kBits, count); });
  });
}

}  // namespace hfta::fusion::cpu
