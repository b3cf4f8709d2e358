#include "fusion/cpu/kernels/image_sets.hpp"

#include <bit>

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

}  // namespace hfta::fusion::cpu
