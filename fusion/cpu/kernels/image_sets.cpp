#include "fusion/cpu/kernels/image_sets.hpp"

namespace hfta::fusion::cpu {
namespace {

// Calls that a set has at least, so that its sums are read and written seldom, compared with what is summed up.
constexpr std::int64_t kCallsOfSet = 2;

}  // namespace

ImageSets::ImageSets(const ConvShape& s, std::int64_t sums)
    : n_(s.n), step_(images_at_once(s)), calls_((n_ + step_ - 1) / step_), sets_(calls_) {
  if (sums > 0) sets_ = parts_of_sum(calls_ / kCallsOfSet, sums);
}

}  // namespace hfta::fusion::cpu
