#include "fusion/compiled/plans.hpp"

#include "base/error.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/cpu/encode.hpp"

namespace hfta::fusion {

void check_precision(const Recipe& recipe) {
  if (recipe.precision != Precision::kBfloat16) return;
  throw Error(ErrorKind::kConfig,
              "lowering: found compiled with precision bfloat16, wanted float32 or tf32: kernels are compiled for "
              "float32 and float64");
}

BoundLayout bounds_in(const Graph& graph, const Recipe& recipe) {
  return recipe.compression ? cpu::bounded_layers(graph)
                            : BoundLayout(std::vector<std::int64_t>(graph.weights.size(), 0));
}

Graph with_owned(Graph graph, const std::vector<bool>& owned) {
  for (std::size_t i = 0; i < graph.weights.size(); ++i)
    graph.weights[i].per_slot = graph.weights[i].per_slot || owned[i];
  return graph;
}

GradientUse gradient_use(const Recipe& recipe) {
  return recipe.clips || recipe.accumulates ? GradientUse::kKept : GradientUse::kApplied;
}

// What is recomputed decides which values are encoded, and so bits: with bounds, Lowering::recompute is not used.
cpu::TrainingOptions training_options(cpu::TrainingOptions options, const BoundLayout& bounds, GradientUse use) {
  const bool encodes = bounds.size() > 0;
  if (encodes) options.recompute = cpu::kBesideEncoded;
  options.bounds = encodes ? &bounds : nullptr;
  options.apply_bytes = use == GradientUse::kApplied ? cpu::kApplyBytes : 0;
  return options;
}

cpu::CompileRequest training_request(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                     const cpu::TrainingOptions& options) {
  return {.graph = reading.graph, .index = reading.index, .dtype = recipe.dtype, .n = n, .options = options};
}

cpu::CompileRequest forward_request(const Graph& graph, const std::vector<int>& index, const Recipe& recipe,
                                    std::int64_t n, const cpu::Library* library, int threads) {
  return {.graph = graph,
          .index = index,
          .dtype = recipe.dtype,
          .n = n,
          .pass = cpu::Pass::kForward,
          .options = {.library = library, .threads = threads}};
}

cpu::CompileRequest of_stage(cpu::CompileRequest request, const StageCut& cut, int number) {
  request.stage.emplace(cpu::StageOf{cut, number});
  return request;
}

cpu::CompileRequest of_stage(cpu::CompileRequest request, const Pipeline* pipeline) {
  return pipeline == nullptr ? request : of_stage(request, pipeline->cut, pipeline->stage());
}

cpu::CompiledGraph training_plan(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                 cpu::TrainingOptions options, const BoundLayout& bounds, GradientUse use) {
  return training_stage(reading, recipe, n, options, bounds, use, nullptr).plan;
}

cpu::CompiledStage training_stage(const SpecializedGraph& reading, const Recipe& recipe, std::int64_t n,
                                  cpu::TrainingOptions options, const BoundLayout& bounds, GradientUse use,
                                  const Pipeline* pipeline) {
  return cpu::compile(of_stage(training_request(reading, recipe, n, training_options(options, bounds, use)), pipeline));
}

}  // namespace hfta::fusion
