#pragma once
/// What is compiled of a recipe: the plans by which slots train. Internal to this room.

#include <cstdint>
#include <vector>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/options.hpp"
#include "fusion/execution/pipeline.hpp"
#include "fusion/graph.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig} for a precision that kernels are not compiled for.
void check_precision(const Recipe& recipe);

/// The weights whose layers' inputs may be encoded: none, unless the recipe compresses.
[[nodiscard]] BoundLayout bounds_in(const Graph& graph, const Recipe& recipe);

/// The graph in which every weight that slots own is their own: what evaluation reads of it is no constant, though its
/// graph writes none of it.
[[nodiscard]] Graph with_owned(Graph graph, const std::vector<bool>& owned);

/// What becomes of a step's gradients.
enum class GradientUse {
  kKept,     ///< All are there at the end: who clips by their norm, or sums them over batches, needs that.
  kApplied,  ///< Each is applied to its weight while the backward goes on.
};
/// How slots that train by the recipe use gradients.
[[nodiscard]] GradientUse gradient_use(const Recipe& recipe);

/// What asks for a training reading's plan, and for the forward of an evaluation graph, of `n` samples.
[[nodiscard]] cpu::CompileRequest training_request(const SpecializedGraph& reading, const Recipe& recipe,
                                                   std::int64_t n, const cpu::TrainingOptions& options);
[[nodiscard]] cpu::CompileRequest forward_request(const Graph& graph, const std::vector<int>& index,
                                                  const Recipe& recipe, std::int64_t n, const cpu::Library* library,
                                                  int threads = 1);
/// The same of one stage; of this rank's, or of the whole graph where `pipeline` is null.
[[nodiscard]] cpu::CompileRequest of_stage(cpu::CompileRequest request, const StageCut& cut, int number);
[[nodiscard]] cpu::CompileRequest of_stage(cpu::CompileRequest request, const Pipeline* pipeline);

/// Compiles a training reading. `n`: samples of a batch. `options`: TrainingOptions::recompute is Lowering::recompute,
/// for plans that encode nothing; `bounds` and `apply_bytes` are set here. `bounds`: bounds_in() of its graph. Throws
/// Error{kConfig} naming an op that cannot be compiled.
[[nodiscard]] cpu::CompiledGraph training_plan(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                               cpu::TrainingOptions options, const BoundLayout& bounds,
                                               GradientUse use);
/// Compiles this rank's stage of a training reading. `pipeline` null: compiles the whole graph.
[[nodiscard]] cpu::CompiledStage training_stage(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                                cpu::TrainingOptions options, const BoundLayout& bounds,
                                                GradientUse use, const Pipeline* pipeline);
/// The options that training_plan() compiles with.
[[nodiscard]] cpu::TrainingOptions training_options(cpu::TrainingOptions options, const BoundLayout& bounds,
                                                    GradientUse use);

}  // namespace hfta::fusion
