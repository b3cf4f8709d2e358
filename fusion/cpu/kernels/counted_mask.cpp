#include "fusion/cpu/kernels/counted_mask.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "fusion/cpu/kernels/wide.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kLanes = 16;  // Philox blocks computed side by side: one AVX-512 register of counters

// kLanes blocks of Philox at once, word by word, so that the compiler turns every line into vector instructions.
// Equal to hfta::philox on each counter (a test compares them).
HFTA_WIDE void philox_lanes(std::uint32_t first, std::uint32_t node, std::uint64_t step, std::uint64_t key,
                            std::uint32_t (&out)[4][kLanes]) {
  std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (std::size_t l = 0; l < kLanes; ++l) {
    c0[l] = first + static_cast<std::uint32_t>(l);
    c1[l] = node;
    c2[l] = static_cast<std::uint32_t>(step);
    c3[l] = static_cast<std::uint32_t>(step >> 32);
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0[l];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c1[l] = static_cast<std::uint32_t>(p1);
      c3[l] = static_cast<std::uint32_t>(p0);
    }
  }
  for (std::size_t l = 0; l < kLanes; ++l) {
    out[0][l] = c0[l];
    out[1][l] = c1[l];
    out[2][l] = c2[l];
    out[3][l] = c3[l];
  }
}

// Calls put(i, word) for elements 0 to n-1.
template <typename Put>
void for_each_word(std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step, Put put) {
  std::uint32_t words[4][kLanes];
  for (std::size_t begin = 0; begin < n; begin += 4 * kLanes) {
    philox_lanes(static_cast<std::uint32_t>(begin / 4), node, step, key, words);
    const std::size_t count = std::min(n - begin, 4 * kLanes);
    for (std::size_t i = 0; i < count; ++i) put(begin + i, words[i % 4][i / 4]);
  }
}

template <typename T>
void fill(T* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  const double keep = std::clamp(1.0 - p, 0.0, 1.0);
  const T scale = keep > 0 ? static_cast<T>(1.0 / keep) : T{0};
  const auto limit = static_cast<std::uint64_t>(std::ldexp(keep, 32));  // u < keep as integers
  for_each_word(n, key, node, step, [&](std::size_t i, std::uint32_t word) { out[i] = word < limit ? scale : T{0}; });
}

}  // namespace

std::uint64_t dropout_key(std::uint64_t study_seed, std::uint64_t trial_seed) noexcept {
  return CountedRandom(study_seed, Stream::kDropout, trial_seed).next_u64();
}

void fill_dropout_mask(float* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  fill(out, n, p, key, node, step);
}

void fill_dropout_mask(double* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node,
                       std::uint64_t step) {
  fill(out, n, p, key, node, step);
}

void fill_uniform(float* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  for_each_word(n, key, node, step,
                [&](std::size_t i, std::uint32_t word) { out[i] = static_cast<float>(word >> 8) * 0x1p-24F; });
}

void fill_uniform(double* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step) {
  for_each_word(n, key, node, step,
                [&](std::size_t i, std::uint32_t word) { out[i] = static_cast<double>(word) * 0x1p-32; });
}

}  // namespace hfta::fusion
