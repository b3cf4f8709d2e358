#pragma once
/// Decides which chunks of growing width are worth timing.

#include <limits>

namespace hfta::fusion {

/// Told what candidates take, in the order in which they are timed, it says whether a wider chunk may still win. A way
/// to run has chunks whose widths double from 1 on. Several candidates may have chunks of 1: wider ones are compared
/// with the slowest of these.
class Widening {
 public:
  /// `width`: slots of the widest array that will be opened.
  explicit Widening(int width) : width_(width) {}

  /// A candidate takes so many seconds for a slot's step in an array of that width.
  void note(int chunk, double seconds_per_slot);

  /// A wider chunk is not, behind two that were no faster per slot than what was half as wide; nor if no chunk as wide
  /// as the array can come to the fastest candidate of all: what slots share is shared once, so a doubling gains no
  /// more than the one before it did, and at most half the time.
  [[nodiscard]] bool is_worthwhile(int chunk) const;

 private:
  int width_;
  int chunk_ = 0;  ///< Width of the previous candidate's chunks.
  double seconds_ = 0, gain_ = 2;
  int in_vain_ = 0;
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace hfta::fusion
