#include "base/random.hpp"

#include <cmath>
#include <numbers>

#include "base/philox.hpp"

namespace hfta {
namespace {

// SplitMix64's finaliser: spreads small integers (seeds, trial numbers) over all 64 bits of the key.
std::uint64_t mix(std::uint64_t z) noexcept {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  std::uint32_t words[4] = {counter[0], counter[1], counter[2], counter[3]};
  philox_rounds(words, key[0], key[1]);
  return {words[0], words[1], words[2], words[3]};
}

CountedRandom::CountedRandom(std::uint64_t seed, Stream stream, std::uint64_t item, std::uint64_t sub) noexcept {
  const std::uint64_t key = mix(seed ^ mix(static_cast<std::uint64_t>(stream)));
  const std::uint64_t place = mix(item ^ mix(sub));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  counter_ = {0, 0, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)};
}

std::uint32_t CountedRandom::next_u32() noexcept {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t CountedRandom::next_u64() noexcept {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

double CountedRandom::uniform() noexcept { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

double CountedRandom::normal() noexcept {
  const double u = 1.0 - uniform();  // (0, 1]: the logarithm stays finite
  const double v = uniform();
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

std::uint64_t CountedRandom::below(std::uint64_t bound) noexcept {
  const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % bound + 1) % bound;
  std::uint64_t draw = next_u64();
  while (draw > limit) draw = next_u64();
  return draw % bound;
}

}  // namespace hfta
