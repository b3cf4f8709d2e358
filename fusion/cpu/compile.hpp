#pragma once
/// A graph compiled for one CPU core, or some: forward and backward of one slot as a list of kernels over one arena,
/// with nothing looked up or allocated while it runs.
///
/// Slots run one after another, depth first: a slot's activations are still in the cache when its gradients need them,
/// and the next slot uses the same memory. Sums are made in a fixed order, so equal slots give equal bits wherever and
/// beside whomever they run, and however many threads share a kernel's work (fusion/threads/team.hpp).

#include <cstddef>
#include <cstdint>
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

/// `graph`: a training reading with complete arguments, whose first output is the loss, of one element; `index`: for
/// counted randomness, each node's position in the model's graph. `n`: samples of a batch. Weights with `trained` get
/// gradients. Throws Error{kConfig} naming an op that has no compiler and that the library cannot run either. The graph
/// may come from anywhere, as long as its values' ids lie within it: each op's compiler checks the tensors and numbers
/// that it is given, and no kernel is emitted that would reach beyond a buffer.
[[nodiscard]] CompiledGraph compile_training(const Graph& graph, const std::vector<int>& index, DType dtype,
                                             std::int64_t n, const TrainingOptions& options = {});
/// CompiledGraph::arena_bytes of what compile_training() would make, by element of `recompute`, which stands in for
/// that of `options`; compiles once for all of them.
[[nodiscard]] std::vector<std::size_t> training_arenas(const Graph& graph, const std::vector<int>& index, DType dtype,
                                                       std::int64_t n, const TrainingOptions& options,
                                                       std::span<const Recompute> recompute);
/// The forward pass alone, of an evaluation reading.
[[nodiscard]] CompiledGraph compile_forward(const Graph& graph, const std::vector<int>& index, DType dtype,
                                            std::int64_t n, const Library* library = nullptr, int threads = 1);

/// One stage of a graph (stages.hpp), compiled. A whole graph is the one stage of a pipeline that has no others.
struct CompiledStage {
  /// Its inputs are the graph's own, undefined where the stage does not read them; its outputs, too, in the last stage,
  /// and none in the others.
  CompiledGraph plan;
  // Values that travel, as in StageGraph: buffers of the plan, row-major but for `sent`.
  std::vector<Tensor> received;  ///< Filled by the caller before the forward,
  std::vector<Tensor> given;     ///< and before the backward (CompiledGraph::backward).
  std::vector<Tensor> sent;      ///< There when the forward has run,
  std::vector<Tensor> returned;  ///< and when the backward has.
};
/// compile_training() and compile_forward() of stage `number`. REQUIRES that `cut` has a stage for every weight that is
/// trained. Throws as they do, and as Stages.
[[nodiscard]] CompiledStage compile_training_stage(const Graph& graph, const std::vector<int>& index, DType dtype,
                                                   std::int64_t n, const TrainingOptions& options, const StageCut& cut,
                                                   int number);
/// CompiledGraph::arena_bytes of the stage's plan, by element of `recompute`, as training_arenas() gives them.
[[nodiscard]] std::vector<std::size_t> training_stage_arenas(const Graph& graph, const std::vector<int>& index,
                                                             DType dtype, std::int64_t n,
                                                             const TrainingOptions& options, const StageCut& cut,
                                                             int number, std::span<const Recompute> recompute);
[[nodiscard]] CompiledStage compile_forward_stage(const Graph& graph, const std::vector<int>& index, DType dtype,
                                                  std::int64_t n, const Library* library, int threads,
                                                  const StageCut& cut, int number);

}  // namespace hfta::fusion::cpu
