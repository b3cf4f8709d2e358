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

/// Of values whose channels are last: what lies encoded is (x - mean) * deviation. Each has an element for a channel.
struct StandardByChannel {
  std::span<const float> mean, deviation;
};

/// How a value lies encoded.
struct EncodeAs {
  std::size_t piece = 1;  ///< Elements of a piece, at least 1; the last may be shorter.
  float bound = 0;
  const StandardByChannel* by = nullptr;  ///< Null: x itself is encoded. Read if the bound is more than 0.
  std::span<std::byte> room = {};         ///< Memory for what fits into it, until the value is decoded no more.
};

/// Values, each a row of pieces of equal length that can be decoded one by one. A piece is encoded in parts
/// (codec.hpp), which lie one behind another in memory that the caller gives, and in slabs if that is too small. Where
/// many elements of a part are 0, only the others are encoded, behind a mask. Slabs are kept from step to step, so that
/// a steady step allocates nothing. One thread, or team, at a time.
class EncodedValues {
 public:
  /// Forgets all values; slabs stay. `count`: number of values to come.
  void begin(std::size_t count);
  /// Encodes value i < count, once. `team` (null: the caller alone) shares the work, to the same values.
  void encode(std::size_t i, std::span<const float> x, const EncodeAs& as, Team* team);
  /// Decodes encode()'s x from element `first` on, as x'. `first` and the end of `x` are ends of pieces. May be called
  /// any number of times. `by`: that of encode().
  void decode(std::size_t i, std::size_t first, std::span<float> x, Team* team,
              const StandardByChannel* by = nullptr) const;

  /// Bytes of the slabs, which are held from step to step.
  [[nodiscard]] std::int64_t held_bytes() const { return held_; }

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kAllOfThem = static_cast<std::size_t>(-1);
  struct Part {
    const std::byte* at = nullptr;
    std::size_t bytes = 0;
    std::size_t nonzero = kAllOfThem;  ///< If fewer: the bytes are a mask, and behind it so many values,
    float middle = 0;                  ///< less this.
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
    bool standard = false;      ///< Values by their channels are encoded.
    std::span<std::byte> room;  ///< What is left of it.
  };
  [[nodiscard]] std::byte* allocate(std::size_t bytes, Encoded& value);
  [[nodiscard]] Part write_part(std::span<const float> x, float bound, Encoded& value);
  static void read_part(const Part& part, std::span<float> x);

  std::vector<Slab> slabs_;
  std::size_t slab_ = 0, used_ = 0;  ///< Where the next part goes.
  std::int64_t held_ = 0;
  std::mutex mutex_;  ///< Guards the members above, and what is left of a value's room.
  std::vector<Encoded> values_;
};

}  // namespace hfta::fusion
