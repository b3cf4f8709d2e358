#pragma once
/// Arguments of calls.

#include <functional>
#include <string>

#include "fusion/graph.hpp"
#include "fusion/pt2/schema.hpp"

namespace hfta::fusion::pt2 {

/// The value that the graph knows by a name; throws where there is none.
using ValueLookup = std::function<ValueId(const std::string& name)>;

/// Throws Error{kConfig}: kinds of arguments that a Graph has no word for.
[[nodiscard]] Arg arg_from(const Tagged& argument, const ValueLookup& lookup);

}  // namespace hfta::fusion::pt2
