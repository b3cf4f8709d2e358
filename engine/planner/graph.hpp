#pragma once
/// A model's training step as the planner sees it: ops with what each of them costs.

#include <cstdint>
#include <string>
#include <vector>

namespace hfta::engine::planner {

/// One op, or a layer of several. Costs are those of one slot; of its weights it has one copy per slot.
struct Op {
  std::string name;
  std::vector<int> inputs;  ///< Indices of the ops whose outputs it reads; all lower than its own. Empty: reads data.
  double flops = 0;         ///< Operations of the forward pass per sample; a multiplication and an addition are two.
  double weights = 0;       ///< Trained numbers.
  double outputs = 0;       ///< Numbers per sample.
};

/// A training step of `slots` models on the same batch of `samples`. A value type.
struct Graph {
  std::string name;
  int slots = 1;
  int samples = 1;
  double bytes = 4;   ///< Size of a number.
  double states = 1;  ///< Numbers that the optimizer keeps for each weight.
  std::vector<Op> ops;

  [[nodiscard]] int size() const { return static_cast<int>(ops.size()); }
};

inline constexpr int kMostOps = 2000;
inline constexpr int kMostInputs = 8000;  ///< Inputs of all ops together.
inline constexpr int kMostSlots = 4096;
inline constexpr int kMostSamples = 1'000'000;
inline constexpr double kMostCost = 1e15;  ///< Limit of each of an op's three numbers.

/// Ops in groups that get one action each: by op, the number of its group, from 0. The `most` ops that cost most (time
/// or weights, against all ops' sums) are centres; each other op joins the centre that is the fewest hops away, the
/// first of several. HeteroG, section 4.1.1. With at most `most` ops each is a group of its own.
[[nodiscard]] std::vector<int> groups_of(const Graph& graph, int most);

}  // namespace hfta::engine::planner
