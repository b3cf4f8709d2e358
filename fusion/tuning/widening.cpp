#include "fusion/tuning/widening.hpp"

#include <algorithm>
#include <cmath>

namespace hfta::fusion {
namespace {

constexpr double kMostGain = 2;  // most that a doubling gains: all that slots do is shared
constexpr double kGain = 1.03;   // less is noise
constexpr double kNoise = 1.25;  // what timings may be wrong by

}  // namespace

void Widening::note(int chunk, double seconds_per_slot) {
  fastest_ = std::min(fastest_, seconds_per_slot);
  if (chunk > chunk_ && chunk_ > 0) {
    gain_ = std::min(kMostGain, seconds_ / seconds_per_slot);
    in_vain_ = gain_ > kGain ? 0 : in_vain_ + 1;
  } else {
    if (chunk == chunk_) seconds_per_slot = std::max(seconds_per_slot, seconds_);
    gain_ = kMostGain;
    in_vain_ = 0;
  }
  chunk_ = chunk;
  seconds_ = seconds_per_slot;
}

bool Widening::is_worthwhile(int chunk) const {
  if (chunk <= chunk_) return true;
  if (in_vain_ == 2) return false;
  const double doublings = std::log2(static_cast<double>(width_) / chunk_);
  return seconds_ <= kNoise * fastest_ * std::pow(std::max(1.0, gain_), doublings);
}

}  // namespace hfta::fusion
