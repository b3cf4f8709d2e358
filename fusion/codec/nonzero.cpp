#include "fusion/codec/nonzero.hpp"

#include <algorithm>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kWord = 32;

inline __attribute__((always_inline)) std::uint32_t mask_of(const float* x, std::size_t n) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < n; ++i) bits |= static_cast<std::uint32_t>(x[i] != 0) << i;
  return bits;
}

}  // namespace

void mask_nonzero(std::span<const float> x, std::uint32_t* mask) {
  simd::multiversion([&] {
    for (std::size_t i = 0; i < x.size(); i += kWord) {
      // The length of a whole word is a constant, so that its loop runs in vectors.
      mask[i / kWord] = x.size() - i >= kWord ? mask_of(x.data() + i, kWord) : mask_of(x.data() + i, x.size() - i);
    }
  });
}

std::size_t take_nonzero(std::span<const float> x, std::uint32_t* mask, float* kept) {
  mask_nonzero(x, mask);
  std::size_t count = 0;
  for (const float value : x) {  // without a branch: which values are 0 cannot be foreseen
    kept[count] = value;
    count += value != 0 ? 1 : 0;
  }
  return count;
}

void put_nonzero(const std::uint32_t* mask, const float* kept, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); i += kWord) {
    const std::uint32_t bits = mask[i / kWord];
    const std::size_t n = std::min(kWord, x.size() - i);
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint32_t is = bits >> k & 1;
      const float next = *kept;  // within the values' number, as there are no more before it than zeros and these
      x[i + k] = is != 0 ? next : 0.0F;
      kept += is;
    }
  }
}

}  // namespace hfta::fusion
