#pragma once
/// A trial's task, ready to be trained.

#include <vector>

#include "engine/config.hpp"
#include "fusion/graph.hpp"

namespace hfta::engine {

/// A trial's task with its graph.
struct PreparedTask {
  TaskSpec spec;  ///< hyper.graph filled in; drop_last where the graph's batch is fixed
  fusion::Graph graph;
  std::vector<fusion::DType> input_types;  ///< Dtypes of an exported model's inputs.
};

}  // namespace hfta::engine
