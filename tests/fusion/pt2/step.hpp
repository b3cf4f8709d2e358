#pragma once
// One training step and one evaluation of an imported graph by the CPU compiler, without torch.

#include <string>

#include "fusion/graph.hpp"

namespace hfta::fusion::test {

/// The graph with the arguments that its calls leave out, for ops that torch.export writes and the CPU compiler knows;
/// others are as they were.
[[nodiscard]] Graph with_defaults(Graph graph);

/// Compiles the graph for `n` samples and runs it once, forward and backward, on weights as they are stored and inputs
/// of ones and zeros. `dtype`: the graph's float type. "": it ran; else why it is not compiled. Throws what is no
/// Error{kConfig}.
[[nodiscard]] std::string run_step(const Graph& graph, std::int64_t n, DType dtype = DType::kFloat32);

}  // namespace hfta::fusion::test
