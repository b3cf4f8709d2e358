#include "search/sampler/sobol_points.hpp"

#include <algorithm>
#include <bit>
#include <boost/random/sobol.hpp>

namespace hfta::search {
namespace {

constexpr int kBits = 53;  // bits of a number; as many as a double holds
constexpr std::size_t kMostAxes = boost::random::default_sobol_table::max_dimension;
constexpr std::uint64_t kIndependent = ~std::uint64_t{0};  // the place of draws of axes without direction numbers

}  // namespace

SobolPoints::SobolPoints(std::size_t dimensions, std::uint64_t seed, Stream stream, std::uint64_t item)
    : dimensions_(dimensions), seed_(seed), item_(item), stream_(stream), axes_(std::min(dimensions, kMostAxes)) {
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    CountedRandom random(seed, stream, item, axis);
    for (int row = 0; row < kBits; ++row) {
      const std::uint64_t diagonal = std::uint64_t{1} << (kBits - 1 - row);
      const std::uint64_t above = ~(2 * diagonal - 1) & ((std::uint64_t{1} << kBits) - 1);  // more significant bits
      axes_[axis].rows.push_back(diagonal | (random.next_u64() & above));
    }
    axes_[axis].shift = random.next_u64() >> (64 - kBits);
  }
}

std::uint64_t SobolPoints::Scrambling::of(std::uint64_t bits) const {
  std::uint64_t scrambled = 0;
  for (const std::uint64_t row : rows) scrambled = 2 * scrambled + (std::popcount(row & bits) & 1);
  return scrambled ^ shift;
}

std::vector<std::vector<double>> SobolPoints::points(std::uint64_t first, std::size_t count) const {
  std::vector<std::vector<double>> all(count, std::vector<double>(dimensions_));
  if (!axes_.empty()) {
    // Boost leaves out the point at the origin; scrambled, it is as good as any other, and without it the runs of 2^m
    // points would not be aligned.
    boost::random::sobol engine(axes_.size());
    if (first > 1) engine.discard((first - 1) * axes_.size());
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        const std::uint64_t bits = first + i == 0 ? 0 : engine() >> (64 - kBits);
        all[i][axis] = static_cast<double>(axes_[axis].of(bits)) / static_cast<double>(std::uint64_t{1} << kBits);
      }
    }
  }
  for (std::size_t i = 0; i < count && axes_.size() < dimensions_; ++i) {
    CountedRandom random(seed_, stream_, item_ ^ kIndependent, first + i);
    for (std::size_t axis = axes_.size(); axis < dimensions_; ++axis) all[i][axis] = random.uniform();
  }
  return all;
}

}  // namespace hfta::search
