#pragma once
/// The interface of one way to run the slots of an array. The array knows which trial is in which slot.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/collectives.hpp"
#include "fusion/execution/pipeline.hpp"
#include "fusion/graph.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/random/draws.hpp"
#include "fusion/recipe.hpp"
#include "fusion/samples.hpp"
#include "fusion/slots/slot_store.hpp"
#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// What executors run: one phase of a step, and evaluation. Everything that it refers to must outlive the executor.
/// Only the store's row count may change, followed by Executor::resize().
struct ExecutorModel {
  const Graph& graph;
  const Recipe& recipe;
  const SpecializedGraph& alone;     ///< The training reading of one slot by itself.
  const SpecializedGraph& training;  ///< The training reading with batch statistics that slots share.
  const SpecializedGraph& evaluation;
  const std::vector<bool>& owned;    ///< By weight: whether slots have their own.
  const std::vector<int>& group_of;  ///< By weight: groups_of_weights (fusion/parameter_groups.hpp).
  const SlotStore& store;
  at::Device device;
  std::shared_ptr<StepGraphBackend> graphs;  ///< Null where nothing is to be captured.
  std::size_t phase = 0;                     ///< Phase of SlotStore::state.
  bool clips_weights = false;                ///< Whether slots may have SlotStep::clip_weights.
  Collectives* group = nullptr;        ///< Ranks that run other samples of each batch; null: this runs all of them.
  const Pipeline* pipeline = nullptr;  ///< Pipeline that this is a stage of; null: it runs the whole graph.
};

/// One slot in one step or prediction.
struct SlotRun {
  std::span<const SlotStep> steps;  ///< By parameter group, first that of parameters in no group.
  SlotRandom random;
  std::span<const double> hypers;  ///< Graph::hypers' values.
  bool occupied = false;           ///< Empty slots run only where others of their chunk do.
};

/// A weight's gradient: its place in Graph::weights, and [c, ...], undefined where the loss does not reach it.
using Gradients = std::vector<std::pair<std::size_t, at::Tensor>>;

/// Runs the store's rows in chunks of c = Lowering::chunk: chunk k has the rows [k*c, (k+1)*c). resize() comes before
/// all else. Calls for different chunks may come from several threads at once, within for_each.
class Executor {
 public:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Rebuilds the data of each chunk after SlotStore::resize; call it once before use.
  virtual void resize() = 0;
  [[nodiscard]] virtual int chunks() const = 0;
  /// Runs `work(chunk)` for the chunks, on the executor's threads; returns when all are done (on a GPU: enqueued). The
  /// first exception is rethrown.
  virtual void for_each(std::span<const int> chunks, const std::function<void(int)>& work) = 0;

  /// One batch of every occupied slot of the chunk, and an optimizer step of those that update (SlotStep). With
  /// ExecutorModel::group the batch is this rank's share; the step and the losses are those of all ranks' shares, and
  /// chunks are run one at a time, in the same order at every rank. Adds to `losses`, [2, c] float64 on the device,
  /// each slot's loss before the step times the batch's weight, and that weight (Objective).
  virtual void step(int chunk, const Batch& batch, std::span<const SlotRun> slots, at::Tensor& losses) = 0;
  /// The chunk's accumulator for step(): [2, c] float64 zeros on the device. It may be the buffer of the last
  /// call.
  [[nodiscard]] virtual at::Tensor fresh_losses(int chunk) = 0;
  /// Forward in evaluation mode: the evaluation's Graph::outputs, with a leading [c] unless c is 1. Records no
  /// gradient.
  [[nodiscard]] virtual std::vector<at::Tensor> predict(int chunk, const Samples& samples,
                                                        std::span<const SlotRun> slots) = 0;

  /// Whether prepare() saves work: layers that all slots share.
  [[nodiscard]] virtual bool shares_layers() const { return false; }
  /// Runs the shared layers on the samples, on all threads.
  virtual void prepare(Samples& /*samples*/, SampleUse /*use*/) {}
  /// How often the shared layers were computed for training.
  [[nodiscard]] virtual std::int64_t shared_runs() const { return 0; }

  /// Whether step() keeps the gradients, of this rank's samples, for gradients().
  virtual void keep_gradients(bool keep) = 0;
  [[nodiscard]] virtual Gradients gradients(int chunk) const = 0;

  /// Bytes held between steps beside the slots.
  [[nodiscard]] virtual std::int64_t workspace_bytes() const { return 0; }
  /// How training steps ran since resize(): captured, replayed, op by op.
  [[nodiscard]] virtual StepCounts step_counts() const { return {}; }
  /// The choice for each node path: a batching rule's candidate, "batched" or "per_slot".
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> choices() const { return {}; }
};

}  // namespace hfta::fusion
