#include "fusion/graph/broadcast.hpp"

#include <algorithm>

namespace hfta::fusion {

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (const Shape* sizes : {&a, &b}) {
    const std::size_t missing = out.size() - sizes->size();
    for (std::size_t d = 0; d < sizes->size(); ++d) {
      std::int64_t& size = out[d + missing];
      if (size != 1 && (*sizes)[d] != 1 && (*sizes)[d] != size) return std::nullopt;
      if ((*sizes)[d] != 1) size = (*sizes)[d];
    }
  }
  return out;
}

}  // namespace hfta::fusion
