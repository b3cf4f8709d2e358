#pragma once
/// The training step of one chunk on a device, in a form that can be captured: everything that changes between steps is
/// read from StepParams, and the host never waits for the device.

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fusion/capture/step_graph_cache.hpp"
#include "fusion/capture/step_kernels.hpp"
#include "fusion/eager/chunk.hpp"
#include "fusion/eager/program.hpp"
#include "fusion/eager/stream_pool.hpp"
#include "fusion/samples.hpp"

namespace hfta::fusion {

/// What the steps of all chunks of an array have in common.
struct CapturableModel {
  const Graph& graph;
  const Program& program;
  const Recipe& recipe;
  int slots;   ///< Slots of a chunk, c.
  int hypers;  ///< Number of Graph::hypers.
  at::Device device;
  bool clips_weights;                      ///< ExecutorModel::clips_weights
  std::string why_not;                     ///< Program::why_not_replayed
  std::atomic<std::int64_t>& shared_runs;  ///< Counts runs of Program::share.
};

class CapturableStep {
 public:
  /// All must outlive it.
  CapturableStep(const CapturableModel& model, Chunk& chunk, const PooledStream& lane);
  CapturableStep(const CapturableStep&) = delete;
  CapturableStep& operator=(const CapturableStep&) = delete;

  /// Executor::step: forward, loss, backward, clipping, optimizer, sum of losses. `slots`: numbers of the chunk's
  /// slots. `keep`: keeps gradients, which no graph does.
  void run(const Batch& batch, std::span<const SlotRun> slots, const at::Tensor& losses, bool keep);

  /// [2, c] float64 zeros in the same place each time, so that graphs can add to them: Executor::fresh_losses.
  [[nodiscard]] at::Tensor fresh_losses();
  [[nodiscard]] const StepCounts& counts() const { return recorder_.counts(); }

 private:
  // An order of samples, in memory that stays: [M] int64.
  struct Order {
    at::Tensor copied, here;
  };

  void bring_orders(const Batch& batch);
  [[nodiscard]] StepKey key_for(const Batch& batch, const at::Tensor& losses) const;
  void step(const Batch& batch, const at::Tensor& losses, bool keep);
  void update(const std::vector<ParameterSlots>& reached) const;
  [[nodiscard]] std::vector<at::Tensor> forward(const Batch& batch);
  // The step's samples of a part: fn(all) is those of one of its inputs.
  [[nodiscard]] std::function<at::Tensor(const SampleArray&)> picker(const Batch& batch, std::size_t part) const;

  const CapturableModel& model_;
  Chunk& chunk_;
  StepParams numbers_;
  StepKernels kernels_;
  StepGraphCache recorder_;
  std::map<std::size_t, Order> orders_;      // by part
  std::vector<std::vector<double>> hypers_;  // by slot, on the host
  at::Tensor losses_;
};

}  // namespace hfta::fusion
