#include "fusion/cpu/kernels/image_sets.hpp"

#include <bit>

#include "fusion/cpu/kernels/elements.hpp"

namespace hfta::fusion::cpu {
namespace {

// Enough that a few threads, mostly powers of two, have as much to do each; calls that a set has at least, so that its
// sums are read and written seldom, compared with what is summed up; and elements of all sums, 2 MiB of float, that
// stay in the last cache.
constexpr std::int64_t kMostSets = 8, kCallsOfSet = 2, kMostSums = 524288;

}  // namespace

ImageSets::ImageSets(const ConvShape& s, std::int64_t sums)
    : n_(s.n), step_(images_at_once(s)), calls_((n_ + step_ - 1) / step_), sets_(calls_) {
  if (sums == 0) return;
  const std::int64_t most = std::min({kMostSets, calls_ / kCallsOfSet, kMostSums / sums});
  sets_ = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(most, 1))));
}

// Threads have something to do four fifths of the time.
bool ImageSets::goes_apart(const Team* team) const {
  if (team == nullptr) return true;
  const std::int64_t threads = team->threads(), rounds = (sets_ + threads - 1) / threads;
  return 5 * sets_ >= 4 * rounds * threads;
}

template <typename T>
void add_sets(Team* team, T* sums, std::int64_t size, std::int64_t sets) {
  if (sets == 1) return;
  share_elements(
      team, size, [&](std::int64_t first, std::int64_t count) __attribute__((always_inline)) {
        for (std::int64_t set = 1; set < sets; ++set) {
          const T* const from = sums + set * size + first;
          for (std::int64_t i = 0; i < count; ++i) sums[first + i] += from[i];
        }
      });
}

template void add_sets(Team*, float*, std::int64_t, std::int64_t);
template void add_sets(Team*, double*, std::int64_t, std::int64_t);

}  // namespace hfta::fusion::cpu
