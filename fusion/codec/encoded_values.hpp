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

/// Values, each a row of pieces of equal length that can be decoded one by one. A piece is encoded in parts
/// (codec.hpp), which lie one behind another in slabs. Slabs are kept from step to step, so that a steady step
/// allocates nothing. One thread, or team, at a time.
class EncodedValues {
 public:
  /// Forgets all values; slabs stay. `count`: of the values to come. `threads`: of a team that may share the work.
  void begin(std::size_t count, int threads);
  /// Value i < count, once each. `piece`: elements of a piece, at least 1; the last one may be shorter. `team` (null:
  /// the caller alone) shares the work, to the same values.
  void encode(std::size_t i, std::span<const float> x, std::size_t piece, float bound, Team* team);
  /// The elements of encode()'s x from `first` on, as x'. `first` and the end of `x` are ends of pieces. Any number of
  /// times.
  void decode(std::size_t i, std::size_t first, std::span<float> x, Team* team) const;

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
  /// Where the parts of a value's n elements begin.
  struct Parts {
    std::size_t n = 0, piece = 1;
    [[nodiscard]] std::size_t in_piece() const;  ///< Parts of a whole piece.
    [[nodiscard]] std::size_t length() const;    ///< Of a part, at most.
    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t begin(std::size_t part) const;
  };
  struct Encoded {
    Parts layout;
    std::vector<Part> parts;
  };
  [[nodiscard]] std::byte* allocate(std::size_t bytes);

  std::vector<Slab> slabs_;
  std::size_t slab_ = 0, used_ = 0;  ///< Where the next part goes.
  std::int64_t held_ = 0;
  std::mutex mutex_;  ///< Of the three above.
  std::vector<Encoded> values_;
  std::vector<std::byte> scratch_;  ///< [threads, most bytes of a part]
};

}  // namespace hfta::fusion
