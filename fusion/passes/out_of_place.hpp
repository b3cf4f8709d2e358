#pragma once
/// Calls that overwrite a tensor, written as calls that make a new one.

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// relu_(x) becomes relu(x), and who reads x behind it reads the new tensor: where nobody reads that memory by another
/// name later, and it is no weight's and no input's. Other calls stay. `graph`: of with_complete_arguments.
[[nodiscard]] Graph with_writes_out_of_place(Graph graph);

}  // namespace hfta::fusion
