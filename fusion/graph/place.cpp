#include "fusion/graph/place.hpp"

#include <fmt/format.h>

namespace hfta::fusion {

std::string place_of(const Node& node) {
  return fmt::format("{}{}{}{}({})", node.where, node.where.empty() ? "" : ": ", node.path,
                     node.path.empty() ? "" : " ", node.op);
}

}  // namespace hfta::fusion
