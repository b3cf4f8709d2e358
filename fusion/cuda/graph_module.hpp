#pragma once
/// Interface of libhfta_cuda_graphs.so.

#include "fusion/step_graph.hpp"

namespace hfta::fusion::cuda {

inline constexpr const char* kGraphModule = "libhfta_cuda_graphs.so";
inline constexpr const char* kMakeStepGraphBackend = "hfta_make_cuda_graphs";

/// Type of the function of that name: it makes a backend, which the caller owns.
using MakeStepGraphBackend = StepGraphBackend*();

}  // namespace hfta::fusion::cuda
