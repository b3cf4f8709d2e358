#pragma once
/// Counted randomness: Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3").
///
/// A draw is a pure function of (key, counter). Nothing is remembered between draws, so that a trial's numbers do not
/// depend on which slot it sits in, on its neighbours, or on how often the study was stopped.

#include <array>
#include <cstdint>

namespace hfta {

/// Purpose of a stream of random numbers; part of its key, so that no two uses share numbers.
enum class Stream : std::uint32_t {
  kSample = 1,
  kInit = 2,
  kDropout = 3,
  kOrder = 4,
  kSplit = 5,
  kSimulation = 6,
  kEnqueued = 7,
  kTpe = 8,
  kPbt = 9,
  kSobol = 10,
  kGp = 11,
  kCmaes = 12,
  kEvolution = 13,
  kFreezeThaw = 14,
  kNsga2 = 15
};

/// One block of Philox4x32-10: 128 bits that depend on every bit of counter and key.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept;

/// An endless sequence of numbers for one (seed, stream, item, sub-item). Cheap to construct; copy it to rewind.
class CountedRandom {
 public:
  /// `item` is usually a trial or an epoch, `sub` a parameter's index or a step.
  CountedRandom(std::uint64_t seed, Stream stream, std::uint64_t item, std::uint64_t sub = 0) noexcept;

  [[nodiscard]] std::uint32_t next_u32() noexcept;
  [[nodiscard]] std::uint64_t next_u64() noexcept;
  /// Uniform in [0, 1) with 53 bits.
  [[nodiscard]] double uniform() noexcept;
  /// Standard normal (Box-Muller; uses two uniforms).
  [[nodiscard]] double normal() noexcept;
  /// Uniform integer in [0, bound), without modulo bias; bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace hfta
