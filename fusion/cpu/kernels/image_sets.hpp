#pragma once
/// How a team goes through a convolution's batch. A call of a pass (conv_pass.hpp) takes images_at_once() images;
/// consecutive calls form a set. Where there are enough sets, a thread does the calls of one set after the other:
/// threads then wait for each other once in a batch, and each finds in its own cache what it wrote there, be it far
/// from the others'. Elsewhere the team shares the work of each call.
///
/// Each set has its own sums of what is summed over images. Sets are a function of the shape and of the size of those
/// sums, never of the team, and their sums are added in order: so the bits are equal for every team.

#include <algorithm>
#include <cstdint>

#include "fusion/cpu/kernels/conv_geometry.hpp"
#include "fusion/cpu/kernels/elements.hpp"
#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// Some images of a batch: what one call takes.
struct SomeImages {
  std::int64_t first = 0, images = 0;
  std::int64_t set = 0;
  bool begins = true;    ///< This is the set's first call.
  Team* team = nullptr;  ///< Who shares the call's work; null: the thread alone.
  int thread = 0;        ///< The thread that makes the call.
};

class ImageSets {
 public:
  /// Sets of no images.
  ImageSets() = default;
  /// Sets that have `sums` elements of sums each; one for each call where nothing is summed.
  explicit ImageSets(const ConvShape& shape, std::int64_t sums = 0);

  [[nodiscard]] std::int64_t count() const { return sets_; }

  /// Calls visit(SomeImages) for all images: those of a set in order, and sets at the same time if `apart` allows it
  /// and the team has enough of them.
  template <typename Visit>
  void for_each(Team* team, bool apart, const Visit& visit) const {
    if (apart && keeps_busy(team, sets_)) {
      return share(team, sets_, [&](std::int64_t set, int thread) { visit_set(set, nullptr, thread, visit); });
    }
    for (std::int64_t set = 0; set < sets_; ++set) visit_set(set, team, 0, visit);
  }

 private:
  template <typename Visit>
  void visit_set(std::int64_t set, Team* team, int thread, const Visit& visit) const {
    const std::int64_t begin = set * calls_ / sets_, end = (set + 1) * calls_ / sets_;
    for (std::int64_t call = begin; call < end; ++call) {
      const std::int64_t first = call * step_;
      visit(SomeImages{first, std::min(step_, n_ - first), set, call == begin, team, thread});
    }
  }

  std::int64_t n_ = 0, step_ = 1, calls_ = 0, sets_ = 0;
};

/// Elements of scratch of one call among others.
template <typename Pass>
[[nodiscard]] std::int64_t scratch_apart(const Pass& pass) {
  return whole_lines(pass.scratch(1));
}
/// Elements of scratch of all calls that run at the same time. `pass`: a DataPass or a WeightPass.
template <typename Pass>
[[nodiscard]] std::int64_t scratch_of_calls(const Pass& pass, int threads) {
  return std::max(threads * scratch_apart(pass), pass.scratch(threads));
}
/// Offset of the call's part in scratch_of_calls().
template <typename Pass>
[[nodiscard]] std::int64_t place_of_call(const Pass& pass, const SomeImages& some) {
  return some.team == nullptr ? some.thread * scratch_apart(pass) : 0;
}

/// Adds the other sets' elements to those of the first one. `sums`: [sets, size].
template <typename T>
void add_sets(Team* team, T* sums, std::int64_t size, std::int64_t sets) {
  add_parts(team, sums, sums + size, size, sets - 1);
}

}  // namespace hfta::fusion::cpu
