#pragma once
// Graphs cut into stages, run one after the other: together what the whole graph is.

#include <cstdint>
#include <vector>

#include "fusion/cpu/compile.hpp"

namespace hfta::fusion::cpu::testing {

/// The stages of a pipeline of one slot.
class StagesInTurn {
 public:
  /// `graph`: as compile() takes it.
  StagesInTurn(const Graph& graph, const std::vector<int>& index, const StageCut& cut, const TrainingOptions& options);

  struct Outcome {
    std::vector<double> outputs;                 ///< Of all outputs, one behind another, row-major.
    std::vector<std::vector<double>> gradients;  ///< By weight; empty where there is none.
    std::int64_t sent = 0;                       ///< Values that travelled forward.
  };
  /// In float64, one batch. `weights`: the bytes of each; `inputs`: likewise.
  [[nodiscard]] Outcome run(const std::vector<std::vector<std::byte>>& weights,
                            const std::vector<std::vector<std::byte>>& inputs, const std::vector<double>& hypers,
                            const SlotRandom& random) const;

 private:
  std::vector<CompiledStage> stages_;
};

/// Cuts of the graph in which each weight lies in a stage drawn at random, in order of their first readers in the
/// first half of them.
[[nodiscard]] std::vector<StageCut> random_cuts(const Graph& graph, int stages, int count);

}  // namespace hfta::fusion::cpu::testing
