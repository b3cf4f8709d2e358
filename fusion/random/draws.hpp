#pragma once
/// Random numbers of a slot that are counted, not drawn: functions of (key, node, step, element), never of slot, width
/// or neighbours. C++17 (nvcc).

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/both.hpp"

namespace hfta::fusion {

/// Numbers that a slot's counted randomness depends on.
struct SlotRandom {
  std::uint64_t key = 0;   ///< Key of (study seed, trial).
  std::uint64_t step = 0;  ///< Steps the trial has trained.
  /// Samples that the values drawn for have, and how many samples of the step's batch are before them, where another
  /// rank has those (fusion/collectives.hpp).
  std::uint64_t samples = 1, earlier = 0;

  /// Elements of the whole batch's value before its n elements here; samples are the value's first dimension. 0 if
  /// there are none here.
  [[nodiscard]] std::size_t elements_before(std::size_t n) const { return samples == 0 ? 0 : n / samples * earlier; }
};

/// Key of one trial's masks.
[[nodiscard]] std::uint64_t dropout_key(std::uint64_t study_seed, std::uint64_t trial_seed) noexcept;

/// out[i] = u_i < 1 - p ? 1 / (1 - p) : 0, u_i uniform in [0, 1), for the n elements of one slot's value in row-major
/// order. u_i is 32 bits of Philox4x32-10 at counter (i / 4, node, step) under `key`: a function of these alone, not of
/// slot, width or neighbours. p >= 1 gives zeros, p <= 0 ones. n < 2^34.
void fill_dropout_mask(float* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node, std::uint64_t step);
void fill_dropout_mask(double* out, std::size_t n, double p, std::uint64_t key, std::uint32_t node, std::uint64_t step);

/// The u_i of fill_dropout_mask(), uniform in [0, 1): 32 bits in double, 24 in float.
void fill_uniform(float* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step);
void fill_uniform(double* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step);

/// A standard normal number of two uniform ones: Box and Muller, Annals of Mathematical Statistics 29 (1958).
HFTA_BOTH double normal_of(double first, double second) {
  const double radius = std::sqrt(-2 * std::log(1 - first));  // 1 - u is never zero
  return radius * std::cos(2 * 3.141592653589793 * second);
}

/// Standard normal numbers: out[i] of u_2i and u_(2i+1), in double.
void fill_normal(float* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step);
void fill_normal(double* out, std::size_t n, std::uint64_t key, std::uint32_t node, std::uint64_t step);

}  // namespace hfta::fusion
