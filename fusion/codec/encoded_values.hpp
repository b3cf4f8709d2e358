#pragma once
/// Memory for what a step keeps encoded between its forward and its backward.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fusion/threads/team.hpp"

namespace hfta::fusion {

/// Values, each encoded in parts (codec.hpp) that lie one behind another in slabs. Slabs are kept from step to step, so
/// that a steady step allocates nothing. One thread, or team, at a time.
class EncodedValues {
 public:
  /// Forgets all values; slabs stay. `count`: of the values to come. `threads`: of a team that may share the work.
  void begin(std::size_t count, int threads);
  /// Value i < count, once each. `team` (null: the caller alone) shares the work, to the same values.
  void encode(std::size_t i, std::span<const float> x, float bound, Team* team);
  /// x' of encode()'s x; x.size() must be that one's. Any number of times.
  void decode(std::size_t i, std::span<float> x, Team* team) const;

  /// Of the slabs and the scratch memory: what is held from step to step.
  [[nodiscard]] std::int64_t held_bytes() const;
  /// What they are for `encoded` bytes of values.
  [[nodiscard]] static std::int64_t held_bytes_for(std::int64_t encoded, int threads);

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  struct Part {
    const std::byte* at = nullptr;
    std::size_t bytes = 0;
  };
  [[nodiscard]] std::byte* allocate(std::size_t bytes);

  std::vector<Slab> slabs_;
  std::size_t slab_ = 0, used_ = 0;  ///< Where the next part goes.
  std::int64_t held_ = 0;
  std::mutex mutex_;  ///< Of the three above.
  std::vector<std::vector<Part>> parts_;
  std::vector<std::byte> scratch_;  ///< [threads, most bytes of a part]
};

}  // namespace hfta::fusion
