#include "fusion/compiled/compilation.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "fusion/compiled/plans.hpp"
#include "fusion/compiled/torch_library.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/execution/pipeline.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/sharing.hpp"
#include "fusion/phases.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {
namespace {

void add_ops(const cpu::CompiledGraph& plan, std::vector<std::string>& ops) {
  for (const std::vector<std::string>& part : plan.parts) {
    for (const std::string& op : part) {
      if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
    }
  }
}

// Visits what is compiled for the phases of a recipe: training for each, evaluation for the first.
template <typename Train, typename Evaluate>
void for_each_phase(const Graph& graph, const Recipe& recipe, Train train, Evaluate evaluate) {
  check_precision(recipe);
  for (std::size_t p = 0; p < phase_count(recipe); ++p) {
    const Graph complete = with_complete_arguments(graph_of_phase(graph, recipe, p));
    const SpecializedGraph training = specialized(complete, Purpose::kTraining);
    train(training);
    if (p > 0) continue;
    SpecializedGraph evaluation = specialized(complete, Purpose::kEvaluation);
    evaluation.graph = with_owned(std::move(evaluation.graph), owned_weights(training));
    evaluate(evaluation);
  }
}

std::int64_t encoded_elements(const cpu::CompiledGraph& plan) {
  std::int64_t elements = 0;
  for (const cpu::EncodedValue& value : plan.encoded) elements += value.elements;
  return elements;
}

}  // namespace

Compilation compilation_of(const Graph& graph, const Recipe& recipe) {
  Compilation found;
  try {
    const std::unique_ptr<const cpu::Library> library = torch_library();
    const std::int64_t n = training_batch(graph, recipe);
    for_each_phase(
        graph, recipe,
        [&](const SpecializedGraph& one) {
          const cpu::CompiledGraph plan = training_plan(one, recipe, n, {.library = library.get()},
                                                        bounds_in(one.graph, recipe), GradientUse::kKept);
          add_ops(plan, found.by_torch);
          found.encoded += std::count_if(plan.encoded.begin(), plan.encoded.end(),
                                         [](const cpu::EncodedValue& value) { return value.elements > 0; });
          found.encoded_bytes += encoded_elements(plan) * size_of(DType::kFloat32);
        },
        [&](const SpecializedGraph& one) {
          static_cast<void>(cpu::compile(forward_request(one.graph, one.index, recipe, n, library.get())));
        });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    found.why_not = error.what();
  }
  return found;
}

std::string why_not_in_stages(const Graph& graph, const Recipe& recipe, int stages) {
  if (std::string why = why_no_pipeline(recipe); !why.empty()) return why;
  const std::unique_ptr<const cpu::Library> library = torch_library();
  const std::int64_t n = training_batch(graph, recipe);
  StageCut cut;
  const auto each = [&](const auto& compile) {
    for (int number = 0; number < stages; ++number) compile(number);
  };
  try {
    for_each_phase(
        graph, recipe,
        [&](const SpecializedGraph& one) {
          cut = cpu::balanced_cut(one.graph, owned_weights(one), n, stages);
          each([&](int number) {
            const cpu::CompileRequest whole = training_request(one, recipe, n, {.library = library.get()});
            static_cast<void>(cpu::compile(of_stage(whole, cut, number)));
          });
        },
        [&](const SpecializedGraph& one) {
          each([&](int number) {
            const cpu::CompileRequest whole = forward_request(one.graph, one.index, recipe, n, library.get());
            static_cast<void>(cpu::compile(of_stage(whole, cut, number)));
          });
        });
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return error.what();
  }
  return "";
}

namespace {

// arena_bytes() for a pipeline: the mean over stages, of which each has arenas of one size.
std::vector<std::int64_t> stage_bytes(const WayQuestion& question, int threads, std::span<const int> recompute) {
  const Recipe& recipe = question.recipe;
  const std::unique_ptr<const cpu::Library> library = torch_library();
  const std::int64_t n = training_batch(question.graph, recipe);
  StageCut cut;
  std::vector<std::vector<std::size_t>> training(static_cast<std::size_t>(question.stages));
  std::vector<std::size_t> evaluating(training.size(), 0);
  for_each_phase(
      question.graph, recipe,
      [&](const SpecializedGraph& one) {
        cut = cpu::balanced_cut(one.graph, owned_weights(one), n, question.stages);
        const BoundLayout none = bounds_in(one.graph, recipe);
        const cpu::TrainingOptions options =
            training_options({.library = library.get(), .threads = threads}, none, gradient_use(recipe));
        for (std::size_t s = 0; s < training.size(); ++s) {
          const cpu::CompileRequest whole = training_request(one, recipe, n, options);
          training[s] = cpu::arena_sizes(of_stage(whole, cut, static_cast<int>(s)), recompute);
        }
      },
      [&](const SpecializedGraph& one) {
        for (const std::int64_t samples : {n, question.evaluation_batch}) {
          for (std::size_t s = 0; samples > 0 && s < evaluating.size(); ++s) {
            const cpu::CompileRequest whole =
                forward_request(one.graph, one.index, recipe, samples, library.get(), threads);
            const cpu::CompiledStage stage = cpu::compile(of_stage(whole, cut, static_cast<int>(s)));
            evaluating[s] = std::max(evaluating[s], stage.plan.arena_bytes);
          }
        }
      });
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < recompute.size(); ++i) {
    std::size_t sum = 0;
    for (std::size_t s = 0; s < training.size(); ++s) sum += std::max(training[s][i], evaluating[s]);
    all.push_back(static_cast<std::int64_t>((sum + training.size() - 1) / training.size()));
  }
  return all;
}

}  // namespace

std::vector<std::int64_t> arena_bytes(const WayQuestion& question, int threads, std::span<const int> recompute) {
  if (question.stages > 1) return stage_bytes(question, threads, recompute);
  const Graph& graph = question.graph;
  const Recipe& recipe = question.recipe;
  const std::unique_ptr<const cpu::Library> library = torch_library();
  const std::int64_t n = training_batch(graph, recipe);
  const GradientUse use = gradient_use(recipe);
  std::vector<std::int64_t> first, all(recompute.size(), 0);  // bytes of the first phase; of all phases
  std::int64_t evaluating = 0;
  const auto arenas_of = [&](const SpecializedGraph& one) {
    const BoundLayout bounds = bounds_in(one.graph, recipe);
    const cpu::TrainingOptions options = {.library = library.get(), .threads = threads};
    if (bounds.size() == 0) {
      return cpu::arena_sizes(training_request(one, recipe, n, training_options(options, bounds, use)), recompute);
    }
    return std::vector<std::size_t>(recompute.size(), training_plan(one, recipe, n, options, bounds, use).arena_bytes);
  };
  for_each_phase(
      graph, recipe,
      [&](const SpecializedGraph& one) {
        const std::vector<std::size_t> bytes = arenas_of(one);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<std::int64_t>(bytes[i]);
        if (first.empty()) first = all;
      },
      [&](const SpecializedGraph& one) {
        for (const std::int64_t samples : {n, question.evaluation_batch}) {
          if (samples == 0) continue;
          const cpu::CompiledGraph plan =
              cpu::compile(forward_request(one.graph, one.index, recipe, samples, library.get(), threads)).plan;
          evaluating = std::max(evaluating, static_cast<std::int64_t>(plan.arena_bytes));
        }
      });
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += std::max<std::int64_t>(0, evaluating - first[i]);
  return all;
}

}  // namespace hfta::fusion
