#pragma once
/// A graph compiled for one CPU core, or some: forward and backward of one slot as a list of kernels over one arena,
/// with nothing looked up or allocated while it runs.
///
/// Slots run one after another, depth first: a slot's activations are still in the cache when its gradients need them,
/// and the next slot uses the same memory. Sums are made in a fixed order, so equal slots give equal bits wherever and
/// beside whomever they run, and however many threads share a kernel's work (fusion/threads/team.hpp).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/encode.hpp"
#include "fusion/cpu/library.hpp"
#include "fusion/cpu/options.hpp"
#include "fusion/cpu/recompute.hpp"
#include "fusion/cpu/stages.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion::cpu {

/// What of a graph is compiled.
enum class Pass {
  kTraining,  ///< Forward and backward.
  kForward,   ///< The forward pass alone.
};

/// One stage of a pipeline.
struct StageOf {
  const StageCut& cut;  ///< REQUIRES that it has a stage for every weight that is trained.
  int number = 0;
};

/// A graph to compile, and how. Refers to what it is made of. Members that have a default need not be named.
struct CompileRequest {
  /// A training reading whose first output is the loss, of one element; for Pass::kForward an evaluation reading. Its
  /// calls have complete arguments. Weights with `trained` get gradients.
  const Graph& graph;
  const std::vector<int>& index;  ///< For counted randomness: each node's position in the model's graph.
  DType dtype = DType::kFloat32;  ///< Of floating-point values.
  std::int64_t n = 1;             ///< Samples of a batch.
  Pass pass = Pass::kTraining;
  TrainingOptions options = {};       ///< Pass::kForward: `library` and `threads` alone are used.
  std::optional<StageOf> stage = {};  ///< Nothing: the whole graph.
};

/// A graph, or one stage of it (stages.hpp), compiled. A whole graph is the one stage of a pipeline that has no others.
struct CompiledStage {
  /// Its inputs are the graph's own, undefined where the stage does not read them; its outputs, too, in the last stage,
  /// and none in the others.
  CompiledGraph plan;
  // Values that travel, as in StageGraph: buffers of the plan, row-major but for `sent`.
  std::vector<Tensor> received = {};  ///< Filled by the caller before the forward,
  std::vector<Tensor> given = {};     ///< and before the backward (CompiledGraph::backward).
  std::vector<Tensor> sent = {};      ///< There when the forward has run,
  std::vector<Tensor> returned = {};  ///< and when the backward has.
};

/// Throws Error{kConfig} naming an op that has no compiler and that the library cannot run either; as Stages; and for
/// bounds of another dtype than float32. The graph may come from anywhere, as long as its values' ids lie within it:
/// each op's compiler checks the tensors and numbers that it is given, and no kernel is emitted that would reach beyond
/// a buffer.
[[nodiscard]] CompiledStage compile(const CompileRequest& request);
/// CompiledGraph::arena_bytes of what compile() would make, by element of `recompute`, which stands in for that of the
/// request's options; compiles once for all of them. Throws as compile().
[[nodiscard]] std::vector<std::size_t> arena_sizes(const CompileRequest& request, std::span<const Recompute> recompute);

}  // namespace hfta::fusion::cpu
