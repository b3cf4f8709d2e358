#pragma once
/// Shapes as broadcasting has them.

#include <optional>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// The shape that both broadcast to; nothing if they do not.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace hfta::fusion
