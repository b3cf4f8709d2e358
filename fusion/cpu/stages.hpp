#pragma once
/// A graph cut into the stages of a pipeline: each runs some of its calls, is sent what it reads of earlier stages, and
/// sends gradients back. This file makes the stages' graphs, without kernels; compile.hpp compiles them.
///
/// The stages work at the same time on the batches of different slots, as those of GPipe do on parts of a batch
/// (Y. Huang et al., GPipe, 2019, arXiv:1811.06965): slots need nothing of each other, so that batches stay whole.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "fusion/cpu/tensor.hpp"
#include "fusion/graph.hpp"
#include "fusion/graph/numbers.hpp"
#include "fusion/graph/stage_cut.hpp"

namespace hfta::fusion::cpu {

/// Properties of a value that are known when the whole graph has been compiled.
struct ValueFacts {
  Dims sizes;
  DType dtype = DType::kFloat32;
  bool has_gradient = false;
};
struct GraphFacts {
  std::map<ValueId, ValueFacts> values;
  std::map<ValueId, Number> numbers;
};

/// The graph that one stage runs. Its values and nodes are the whole graph's, with more values behind them.
struct StageGraph {
  Graph graph;
  std::vector<int> index;  ///< Entries of the whole graph's index, for the stage's nodes.
  // Inputs behind those of the whole graph.
  std::vector<ValueId> received;  ///< Values from the stage before, in the order of its `sent`.
  std::vector<ValueId> given;     ///< Gradients of what is sent, where it has some, from the stage behind.
  // Outputs: in the last stage behind those of the whole graph, which no other stage has.
  std::vector<ValueId> sent;
  std::vector<ValueId> returned;  ///< Gradients of what is received, where that has some. No call gives them.
  // The values whose gradients `given` and `returned` are.
  std::vector<ValueId> given_of, returned_of;
};

/// Refers to its arguments.
class Stages {
 public:
  /// Throws Error{kConfig} naming a call that writes memory in place which two stages read.
  Stages(const Graph& graph, const StageCut& cut);

  /// Values that `stage` sends to the next one: those it made or received and a later one reads. In order of ids.
  [[nodiscard]] const std::vector<ValueId>& sent(int stage) const { return sent_[static_cast<std::size_t>(stage)]; }
  /// Values that any stage sends.
  [[nodiscard]] std::vector<ValueId> all_sent() const;
  /// By weight: whether a call of the stage reads it there.
  [[nodiscard]] std::vector<bool> weights_of(int number) const;
  /// `index`: by node of the whole graph. `facts`: of all_sent() and of all numbers.
  [[nodiscard]] StageGraph stage(int number, const std::vector<int>& index, const GraphFacts& facts) const;

 private:
  void find_values();
  void find_sent();
  void check_writes() const;
  [[nodiscard]] std::set<ValueId> written_for_others(std::size_t node) const;
  [[nodiscard]] int stage_of(ValueId id) const { return of_value_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::vector<bool> nodes_of(int number) const;

  const Graph& graph_;
  const StageCut& cut_;
  std::vector<int> of_value_, of_node_;
  std::vector<std::vector<ValueId>> sent_;
};

/// A cut by which the slowest stage is as fast as can be, by an estimate from the sizes that the graph says its values
/// have. `owned`: by weight, whether it lies in a stage. The same for the same graph on any machine. Throws
/// Error{kConfig} for more stages than there are calls that read a weight of their own.
[[nodiscard]] StageCut balanced_cut(const Graph& graph, const std::vector<bool>& owned, std::int64_t n, int stages);

}  // namespace hfta::fusion::cpu
