#include "engine/driver/packing/width_limits.hpp"

#include <algorithm>

namespace hfta::engine {
namespace {

constexpr int kWidest = 1 << 20;

}  // namespace

WidthLimits::WidthLimits(std::optional<int> width, Recommended recommended)
    : width_(width), recommended_(std::move(recommended)) {
  if (width_) widest_ = std::max(widest_, std::min(*width_, kWidest));
}

int WidthLimits::limit(std::size_t device, const std::string& partition, int draw) {
  const auto known = limits_.find({device, partition});
  if (known != limits_.end()) return known->second;
  const int wanted = width_ ? *width_ : recommended_(device, draw);
  const int most = std::clamp(wanted, 1, kWidest);
  widest_ = std::max(widest_, most);
  return limits_[{device, partition}] = most;
}

void WidthLimits::halve(std::size_t device, const std::string& partition, int width) {
  limits_[{device, partition}] = std::max(1, width / 2);
}

}  // namespace hfta::engine
