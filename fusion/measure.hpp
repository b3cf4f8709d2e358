#pragma once
/// Choosing a lowering by measuring candidates on the real model, batch and device.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fusion/collectives.hpp"
#include "fusion/epochs.hpp"
#include "fusion/lowering.hpp"
#include "fusion/measured.hpp"
#include "fusion/step_graph.hpp"

namespace hfta::fusion {

struct MeasureOptions {
  int width = 1;                    ///< Widest array that will be opened.
  int threads = 1;                  ///< Cores to use; on a GPU, chunks that may run side by side.
  double slot_steps = 0;            ///< Training steps of single slots that are expected to follow.
  double budget_share = 0.02;       ///< Largest share of the predicted time of those steps to spend on measuring.
  std::function<bool()> stop = {};  ///< Called between candidates: true ends measuring with the results so far.
  std::shared_ptr<StepGraphBackend> graphs = nullptr;  ///< The backend of the arrays that will run.
  std::vector<Lowering> ways = {};                     ///< Ways to time, in this order; empty: lowering_candidates().
  /// Choices measured for a graph of the same ops with other sizes; null: none. A way that was clearly slower there
  /// than the fastest is not timed, provided that the first candidate takes about as long as it did there.
  const MeasuredChoices* alike = nullptr;
};

/// Candidates for the graph on that device, most promising first: on a CPU compiled, if it can be; each slot by itself
/// (images also laid out channels last), then chunks of growing width; on a GPU the other way round.
[[nodiscard]] std::vector<Lowering> lowering_candidates(const Graph& graph, const Recipe& recipe,
                                                        const MeasureOptions& options, const at::Device& device);

/// Measures candidates until the budget is spent, then other forms of each op family in the best of them. Chunks are
/// widened as long as that makes slots faster; candidates close to the fastest, and the first candidate, are
/// timed a second time if the budget allows, and the better time counts. The first candidate is always timed, and a
/// second time, whatever the budget, where another one seems faster; with no work ahead (slot_steps 0) nothing is
/// timed, and the first candidate is returned as "not measured".
[[nodiscard]] MeasuredChoices measure(const Graph& graph, const Recipe& recipe, const DeviceData& data,
                                      const MeasureOptions& options, const at::Device& device, const Clock& clock);

/// Mean seconds of a wave of training steps by that lowering (Measured::wave_seconds), over about `window` seconds:
/// what a device gives that others use as well. Only width, threads and graphs of `options` count. Throws what an Array
/// throws.
[[nodiscard]] double sustained_wave_seconds(const Graph& graph, const Recipe& recipe, const DeviceData& data,
                                            const MeasureOptions& options, const Lowering& lowering, double window,
                                            const at::Device& device, const Clock& clock);

/// How the ranks of a group share some steps of an array.
struct SharedSteps {
  Collectives& group;
  std::vector<int> parts = {};  ///< How they divide batches (fusion::share_of_batch); empty: they do not.
  int steps = 1;
};
/// Mean seconds of a step until all ranks have made theirs. Each has an array of options.width slots: the same ones
/// where batches are divided, else slots of its own; a rank of width 0 only waits. All ranks call it at once. Throws
/// what an Array throws.
[[nodiscard]] double shared_step_seconds(const Graph& graph, const Recipe& recipe, const DeviceData& data,
                                         const MeasureOptions& options, const Lowering& lowering,
                                         const SharedSteps& shared, const at::Device& device, const Clock& clock);

}  // namespace hfta::fusion
