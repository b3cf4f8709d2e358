#include "fusion/random/draws.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "fusion/random/mask_part.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kLanes = 16;  // Philox blocks computed side by side: one AVX-512 register of counters

// NOLINTBEGIN(modernize-use-using): attributes
typedef std::uint32_t Words __attribute__((vector_size(64)));
typedef std::uint64_t Doubles __attribute__((vector_size(64)));
// NOLINTEND(modernize-use-using)

// The high and low words of c times a factor: every other lane at once, in 64 bits.
inline __attribute__((always_inline)) void multiply(const Words& c, std::uint64_t factor, Words& high, Words& low) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  const auto pairs = std::bit_cast<Doubles>(c);
  const Doubles even = (pairs & kLow) * factor, odd = (pairs >> 32) * factor;
  high = std::bit_cast<Words>((even >> 32) | (odd & ~kLow));
  low = std::bit_cast<Words>((even & kLow) | (odd << 32));
}

// a0 b0 a1 b1 ... of the first, or second, halves.
inline __attribute__((always_inline)) Words zipped(const Words& a, const Words& b, bool second) {
  return second ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
                : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// kLanes blocks of Philox at once, block by block in `out`. Equal to hfta::philox on each counter (a test compares
// them).
inline __attribute__((always_inline)) void philox_lanes(std::uint32_t first, std::uint32_t node, std::uint64_t step,
                                                        std::uint64_t key, Words (&out)[4]) {
  const Words zero = {};
  Words c0 = Words{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + first, c1 = zero + node;
  Words c2 = zero + static_cast<std::uint32_t>(step), c3 = zero + static_cast<std::uint32_t>(step >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    Words high0, low0, high2, low2;
    multiply(c0, 0xD2511F53, high0, low0);
    multiply(c2, 0xCD9E8D57, high2, low2);
    c0 = high2 ^ c1 ^ k0;
    c2 = high0 ^ c3 ^ k1;
    c1 = low2;
    c3 = low0;
  }
  for (const bool second : {false, true}) {
    const Words even = zipped(c0, c2, second), odd = zipped(c1, c3, second);
    Words* const pair = second ? out + 2 : out;
    pair[0] = zipped(even, odd, false);
    pair[1] = zipped(even, odd, true);
  }
}

// out[i] = of(word first + i) for elements 0 to n-1.
template <typename T, typename Of>
inline __attribute__((always_inline)) void fill_words(T* out, std::size_t n, std::uint64_t key, std::uint32_t node,
                                                      std::uint64_t step, std::size_t first, Of of) {
  static_assert(kDrawnAtOnce == 4 * kLanes);
  Words lanes[4];
  const auto* const words = reinterpret_cast<const std::uint32_t*>(lanes);
  if (const std::size_t skipped = first % kDrawnAtOnce; skipped > 0) {
    const std::size_t count = std::min(n, kDrawnAtOnce - skipped);
    philox_lanes(static_cast<std::uint32_t>((first - skipped) / 4), node, step, key, lanes);
    for (std::size_t i = 0; i < count; ++i) out[i] = of(words[skipped + i]);
    out += count;
    n -= count;
    first += count;
  }
  for (std::size_t begin = 0; begin < n; begin += 4 * kLanes) {
    philox_lanes(static_cast<std::uint32_t>((first + begin) / 4), node, step, key, lanes);
    T* const to = out + begin;
    if (n - begin >= 4 * kLanes) {
      for (std::size_t i = 0; i < 4 * kLanes; ++i) to[i] = of(words[i]);
    } else {
      for (std::size_t i = 0; i < n - begin; ++i) to[i] = of(words[i]);
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void fill(T* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node,
                                                std::uint64_t step, std::size_t first) {
  const double keep = std::clamp(1.0 - p, 0.0, 1.0);
  if (keep <= 0 || keep >= 1) {
    std::fill_n(out, n, static_cast<T>(keep));
    return;
  }
  const T scale = static_cast<T>(1.0 / keep);
  const auto limit = static_cast<std::uint32_t>(std::ldexp(keep, 32));  // u < keep as integers
  fill_words(
      out, n, key, node, step,
      first, [=](std::uint32_t word) __attribute__((always_inline)) { return word < limit ? scale : T{0}; });
}

}  // namespace

std::uint64_t dropout_key(std::uint64_t study_seed, std::uint64_t trial_seed) noexcept {
  return CountedRandom(study_seed, Stream::kDropout, trial_seed).next_u64();
}

void fill_dropout_mask_part(float* out, std::size_t first, std::size_t n, double p, std::uint64_t key,
                            std::uint32_t node, std::uint64_t step) {
  simd::multiversion([&] { fill(out, n, p, key, node, step, first); });
}

void fill_dropout_mask_part(double* out, std::size_t first, std::size_t n, double p, std::uint64_t key,
                            std::uint32_t node, std::uint64_t step) {
  simd::multiversion([&] { fill(out, n, p, key, node, step, first); });
}

void fill_dropout_mask(float* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  fill_dropout_mask_part(out, 0, n, p, key, node, step);
}

void fill_dropout_mask(double* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node,
                       std::uint64_t step) {
  fill_dropout_mask_part(out, 0, n, p, key, node, step);
}

void fill_uniform(float* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  simd::multiversion([&] {
    fill_words(out, n, key, node, step, 0, [](std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; });
  });
}

void fill_uniform(double* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  simd::multiversion([&] {
    fill_words(out, n, key, node, step, 0, [](std::uint32_t word) { return static_cast<double>(word) * 0x1p-32; });
  });
}

namespace {

template <typename T>
void normals(T* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  std::vector<double> uniform(2 * n);
  fill_uniform(uniform.data(), uniform.size(), key, node, step);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(normal_of(uniform[2 * i], uniform[2 * i + 1]));
}

}  // namespace

void fill_normal(float* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  normals(out, n, key, node, step);
}

void fill_normal(double* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  normals(out, n, key, node, step);
}

}  // namespace hfta::fusion
