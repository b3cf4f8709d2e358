#pragma once
/// Interface of another library to a compiled graph: it runs the parts without a compiler here, each as one kernel,
/// and computes what is known before anything runs.
///
/// cpu/ knows no library. compiled/ brings LibTorch; without a library a graph is compiled wholly or not at all.

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// Consecutive calls of a graph, as a graph of its own with complete arguments: its weights are the tensors that the
/// calls read, its outputs those that others read. It has no inputs, and no numbers that are computed from sizes.
struct PartGraph {
  Graph graph;                 ///< Weight::trained: a gradient is wanted.
  std::vector<int> index;      ///< Each node's position in the model's graph, for counted randomness.
  std::vector<Tensor> inputs;  ///< By Graph::weights.
  /// By Graph::weights: the bytes of a tensor that is known beforehand (CompiledGraph::constants); else null.
  std::vector<const std::byte*> known;
};

/// A part made ready to run. Immutable; any number of threads may run it, each with a Kept of its own.
class Part {
 public:
  struct Output {
    Dims sizes, strides;  ///< Strides that reach every element exactly once.
    DType dtype = DType::kFloat32;
    std::vector<bool> reaches;         ///< By input: whether a gradient flows back from here to there.
    std::vector<bool> reaches_output;  ///< The same by output, within the part; of itself, unspecified.

    [[nodiscard]] bool has_gradient() const { return std::find(reaches.begin(), reaches.end(), true) != reaches.end(); }
  };

  Part() = default;
  virtual ~Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] virtual const std::vector<Output>& outputs() const = 0;
  /// Reads `inputs` (PartGraph::inputs) and writes `outputs`. `kept`: what backward() needs is put there, in place of
  /// what is there. A call in place writes an input's memory. Throws Error{kConfig} where an output gets other sizes
  /// than it says.
  virtual void forward(const Run& run, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                       std::unique_ptr<Kept>& kept) const = 0;
  /// A gradient's memory; `add`: it is added to what is there. Undefined: nobody wants it, or (of outputs) the loss
  /// does not depend on it.
  struct Gradient {
    Tensor tensor;
    bool add = false;
  };
  /// Runs after forward(), whose inputs must not have been written since: their values lie where they were. Leaves
  /// `kept` empty.
  virtual void backward(const Run& run, std::span<const Gradient> outputs, std::span<const Gradient> inputs,
                        std::unique_ptr<Kept>& kept) const = 0;
};

/// Calls whose results are known before anything runs, computed in the graph's order while it is compiled.
class KnownValues {
 public:
  struct Snapshot {
    Dims sizes;
    std::vector<bool> repeated;  ///< By dimension: it is stored once.
    DType dtype = DType::kFloat32;
    std::vector<std::byte> bytes;  ///< Row-major.
  };

  KnownValues() = default;
  virtual ~KnownValues() = default;
  KnownValues(const KnownValues&) = delete;
  KnownValues& operator=(const KnownValues&) = delete;

  /// A weight that is a constant (constant_weights), before a call reads it.
  virtual void give(const Weight& weight) = 0;
  /// Runs a call without numbers that are computed from sizes. `shapes`: by value of the graph, the sizes and type of a
  /// tensor that is not known and whose elements the call does not read (new_zeros); undefined for others. Returns
  /// false, and knows nothing new, where the library cannot run it.
  [[nodiscard]] virtual bool run(const Node& node, std::span<const Tensor> shapes) = 0;
  /// The contents of a value that a call or give() gave, as calls in place have changed it since.
  [[nodiscard]] virtual Snapshot snapshot(ValueId id) const = 0;
};

class Library {
 public:
  Library() = default;
  virtual ~Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// `training`: backward() will be called. Throws Error{kConfig} naming an op that it cannot run so, or whose results
  /// have sizes that depend on the data.
  [[nodiscard]] virtual std::unique_ptr<const Part> part(const PartGraph& part, bool training) const = 0;
  [[nodiscard]] virtual std::unique_ptr<KnownValues> known_values() const = 0;
};

}  // namespace hfta::fusion::cpu
