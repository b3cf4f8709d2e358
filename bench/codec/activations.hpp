#pragma once
/// What layers might save.

#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace hfta::bench {

/// Normal numbers; `relu`: those below zero are zero.
inline std::vector<float> activations(std::size_t n, bool relu) {
  CountedRandom random(1, Stream::kDropout, 0);
  std::vector<float> x(n);
  for (float& v : x) {
    const double normal = std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(6.283185307 * random.uniform());
    v = relu && normal < 0 ? 0.0F : static_cast<float>(normal);
  }
  return x;
}

}  // namespace hfta::bench
