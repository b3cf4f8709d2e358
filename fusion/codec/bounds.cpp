#include "fusion/codec/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hfta::fusion {
namespace {

bool usable(double x) { return std::isfinite(x) && x > 0; }

double nonzero_share(std::span<const float> values) {
  if (values.empty()) return 0;
  const auto zeros = std::count(values.begin(), values.end(), 0.0F);
  return 1 - static_cast<double>(zeros) / static_cast<double>(values.size());
}

// The root of the mean over channels of term(channel).
template <typename Term>
double root_of_mean(std::span<const ChannelStatistics> channels, Term term) {
  double sum = 0;
  for (const ChannelStatistics& channel : channels) sum += term(channel);
  return channels.empty() ? 0 : std::sqrt(sum / static_cast<double>(channels.size()));
}

}  // namespace

CodingError coding_error(std::span<const float> values, float bound) {
  const double step = 2 * static_cast<double>(bound);
  CodingError error;
  if (values.empty() || !usable(step)) return error;
  for (const float value : values) {
    const auto x = static_cast<double>(value);
    const double off = step * std::nearbyint(x / step) - x;
    if (!std::isfinite(off)) continue;
    error.mean += off;
    error.square += off * off;
  }
  const auto n = static_cast<double>(values.size());
  return {error.mean / n, error.square / n};
}

double uniform_error(std::span<const ChannelStatistics> channels, float bound) {
  return static_cast<double>(bound) *
         root_of_mean(channels, [](const ChannelStatistics& c) { return nonzero_share(c.values) / 3 * c.squares; });
}

double gradient_error(std::span<const ChannelStatistics> channels, float bound) {
  return root_of_mean(channels, [bound](const ChannelStatistics& c) {
    const CodingError error = coding_error(c.values, bound);
    const double mean = error.mean * error.mean;
    const double beside = c.squares - c.square_of_sum / static_cast<double>(c.positions);
    return mean * c.square_of_sum + (error.square - mean) * std::max(beside, 0.0);
  });
}

float bound_for(std::span<const ChannelStatistics> channels, double sigma) {
  constexpr int kSteps = 40;
  const double first = sigma / uniform_error(channels, 1);
  if (!usable(sigma) || !usable(first) || !(first < static_cast<double>(std::numeric_limits<float>::max()))) return 0;
  float bound = std::nextafter(static_cast<float>(first), 0.0F);
  for (int s = 0; s < kSteps; ++s) {
    const double found = gradient_error(channels, bound);
    if (found <= sigma) return bound;
    if (!usable(found)) return 0;
    bound *= static_cast<float>(std::clamp(sigma / found, 0.5, 0.95));
  }
  return 0;
}

double gradient_scale(std::span<const float> state, double state_per_gradient) {
  if (state.empty()) return 0;
  double sum = 0;
  for (const float v : state) sum += std::abs(static_cast<double>(v));
  return sum / static_cast<double>(state.size()) / state_per_gradient;
}

bool BoundCadence::due() {
  if (left > 0) {
    --left;
    return false;
  }
  left = std::max<std::int64_t>(current, 1) - 1;
  return true;
}

void BoundCadence::moved(double most) {
  constexpr double kMuch = 2;
  const std::int64_t longest = std::max<std::int64_t>(interval, 1);
  const bool settled = most <= kMuch;  // not where it is NaN
  current = settled ? (current > longest / 2 ? longest : 2 * std::max<std::int64_t>(current, 1))
                    : std::max<std::int64_t>(std::min(current, longest) / 2, 1);
  left = current - 1;
}

double movement(float before, float now) {
  if (before == now) return 1;
  const double ratio = static_cast<double>(now) / static_cast<double>(before);
  return ratio < 1 ? 1 / ratio : ratio;
}

}  // namespace hfta::fusion
