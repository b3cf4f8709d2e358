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
  /// Forgets all values; slabs stay. `count`: number of values to come. `threads`: those of a team that may share work.
  void begin(std::size_t count, int threads);
  /// Encodes value i < count, once. `piece`: elements of a piece, at least 1; the last may be shorter. `team` (null:
  /// the caller alone) shares the work, to the same values.
  void encode(std::size_t i, std::span<const float> x, std::size_t piece, float bound, Team* team);
  /// Decodes encode()'s x from element `first` on, as x'. `first` and the end of `x` are ends of pieces. May be called
  /// any number of times.
  void decode(std::size_t i, std::size_t first, std::span<float> x, Team* team) const;

  /// Bytes of the slabs and the scratch memory, which are held from step to step.
  [[nodiscard]] std::int64_t held_bytes() const;
  /// What held_bytes() is for `encoded` bytes of values.
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
    [[nodiscard]] std::size_t length() const;    ///< Most elements of a part.
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
  std::mutex mutex_;  ///< Guards the members above.
  std::vector<Encoded> values_;
  std::vector<std::byte> scratch_;  ///< [threads, most bytes of a part]
};

}  // namespace hfta::fusion
