#include "fusion/passes/specialize.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "base/error.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/verify.hpp"

namespace hfta::fusion {
namespace {

constexpr bool kYes = true, kNo = false;

// Each finds what those above it left: means are taken of calls that are still on, buffers are written by calls that
// are still there, and what nothing needs any more is dropped behind everything that changes calls.
constexpr std::array<Pass, 6> kPasses = {{
    {"modes-off", "layers that behave otherwise in training are told that they evaluate", with_modes_off,  //
     kNo, kNo, kYes, kNo},
    {"means", "what is drawn at random stands at its mean", with_means,  //
     kNo, kNo, kYes, kNo},
    {"buffers-kept", "weights and buffers are not written in place", with_buffers_kept,  //
     kNo, kNo, kYes, kYes},
    {"split-products", "products over concatenated channels become sums, repeated parts computed once",
     with_split_products,  //
     kYes, kYes, kYes, kYes},
    {"prune", "calls that neither the output nor a buffer needs are dropped", pruned,  //
     kYes, kYes, kYes, kYes},
    {"shared-statistics", "batch norm of what slots share is computed once, its statistics are each slot's own",
     with_shared_statistics,  //
     kNo, kYes, kNo, kNo},
}};

std::vector<ValueId> given(const Objective& objective) {
  if (objective.weight == kNoValue) return {objective.loss};
  return {objective.loss, objective.weight};
}

bool is_for(const Pass& pass, Purpose purpose, bool own_evaluation) {
  switch (purpose) {
    case Purpose::kTraining:
      return pass.training;
    case Purpose::kTrainingTogether:
      return pass.together;
    case Purpose::kEvaluation:
      return own_evaluation ? pass.evaluation_of_its_own : pass.evaluation;
  }
  return false;
}

void check(const Pass& pass, const SpecializedGraph& reading) {
  try {
    verify(reading.graph);
  } catch (const Error& error) {
    throw Error(ErrorKind::kInternal,
                fmt::format("pass '{}': its graph does not hold together: {}", pass.name, error.what()));
  }
  if (reading.index.size() == reading.graph.nodes.size()) return;
  throw Error(ErrorKind::kInternal, fmt::format("pass '{}': found {} positions of {} calls", pass.name,
                                                reading.index.size(), reading.graph.nodes.size()));
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

SpecializedGraph specialized(const Graph& graph, Purpose purpose, const PassObserver& observe) {
  const bool own = purpose == Purpose::kEvaluation && graph.evaluation != nullptr;
  SpecializedGraph reading{own ? *graph.evaluation : graph, {}};
  if (purpose != Purpose::kEvaluation && graph.objective) reading.graph.outputs = given(*graph.objective);
  reading.graph.objective.reset();
  reading.index.resize(reading.graph.nodes.size());
  std::iota(reading.index.begin(), reading.index.end(), 0);
  for (const Pass& pass : kPasses) {
    if (!is_for(pass, purpose, own)) continue;
    reading = pass.run(std::move(reading));
    check(pass, reading);
    if (observe) observe(pass, reading);
  }
  return reading;
}

}  // namespace hfta::fusion
