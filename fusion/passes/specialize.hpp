#pragma once
/// Specializes a graph for training or evaluation: an ordered list of passes, each from graph to graph, and its driver.
/// README.md says how to add a pass.

#include <functional>
#include <span>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// A graph on its way through the passes, or at their end.
struct SpecializedGraph {
  Graph graph;
  std::vector<int> index;  ///< Position that each node has in the model's graph: the key of its randomness.
};

enum class Purpose {
  kTraining,          ///< A slot by itself.
  kTrainingTogether,  ///< Slots that share what they can.
  /// A reading of the training graph: what training turns on is off, buffers are not written, random tensors are at
  /// their mean. Of a graph that has its own evaluation: that one as it stands, without its writes to buffers.
  kEvaluation,
};

/// One row of the list.
struct Pass {
  const char* name;
  const char* what;  ///< Description in one line, for the README and messages.
  SpecializedGraph (*run)(SpecializedGraph);
  bool training;               ///< Whether it is run for either purpose of training,
  bool together;               ///< for slots that share what they can,
  bool evaluation;             ///< for evaluation that is read from the training graph,
  bool evaluation_of_its_own;  ///< for evaluation that the model brings.
};

/// All passes, in the order in which they are run.
[[nodiscard]] std::span<const Pass> passes();

/// Called after each pass with its result.
using PassObserver = std::function<void(const Pass&, const SpecializedGraph&)>;

/// `graph`: of with_complete_arguments. A training reading gives the graph's objective, if it has one, in place of its
/// outputs. Runs the passes for `purpose`, and verifies the graph after each. Throws
/// Error{kInternal} naming the pass whose graph is invalid.
[[nodiscard]] SpecializedGraph specialized(const Graph& graph, Purpose purpose, const PassObserver& observe = {});

}  // namespace hfta::fusion
