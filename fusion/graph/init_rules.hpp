#pragma once
/// How torch.nn's modules start their parameters and buffers, for layers and for exported models that start afresh.

#include <functional>
#include <optional>
#include <string>

#include "fusion/op_traits.hpp"

namespace hfta::fusion {

/// The first values of the module's parameter or buffer `name` ("weight", "in_proj_bias") of `shape`; nothing: modules
/// of this rule do not say. `shape_of` gives the shapes of the module's own ones by name, and {} for those it lacks.
[[nodiscard]] std::optional<Init> init_of(const OpTraits& op, const std::string& name, const Shape& shape,
                                          const std::function<Shape(const std::string&)>& shape_of);

}  // namespace hfta::fusion
