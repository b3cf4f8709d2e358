#include "engine/driver/packing/widths.hpp"

#include <algorithm>

namespace hfta::engine {
namespace {
int ceil_div(int a, int b) { return (a + b - 1) / b; }
}  // namespace

int even_width(int waiting, int limit, int parts) {
  const int arrays = std::min(waiting, std::max(parts, ceil_div(waiting, limit)));
  return ceil_div(waiting, arrays);
}

std::optional<int> better_width(int width, int wanted, int limit) {
  const int even = even_width(wanted, limit, 1);
  const bool shrinks = wanted < width && 4 * even <= 3 * width;
  const bool grows = 3 * even >= 4 * width;
  if (even == width || !(shrinks || grows)) return std::nullopt;
  return even;
}

}  // namespace hfta::engine
