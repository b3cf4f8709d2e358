#pragma once
/// An array's slots run by kernels that were compiled for its graph (fusion/cpu), on a CPU.

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/cpu/library.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/slots/slot_store.hpp"

namespace hfta::fusion {

/// One slot for one run.
struct CompiledSlot {
  int row = 0;  ///< In the SlotStore.
  SlotRandom random;
  std::span<const double> hypers;
  Team* team = nullptr;  ///< Who shares the work; null: the caller alone. Results are equal bits.
  bool counts = true;    ///< Batch::counts
};

/// A batch's mean loss, and what the mean was divided by.
struct BatchLoss {
  double mean = 0, weight = 0;
};

/// Any number of threads may call it at once, for different slots. A call allocates nothing once its batch size has
/// been met by as many threads.
class CompiledModel {
 public:
  /// Compiles for the recipe's batch size, others when they come, and for teams of at most so many threads.
  /// `recompute`: Lowering::recompute. Throws Error{kConfig} naming an op that cannot be compiled.
  CompiledModel(const ExecutorModel& model, int threads, int recompute);
  ~CompiledModel();

  /// One batch, and an optimizer step with the slot's numbers by group; returns the loss before it. With ranks, of all
  /// their samples. `gradients` (null: not wanted): those of the trained weights, of these samples, are copied there.
  BatchLoss step(const CompiledSlot& slot, const Samples& samples, std::span<const SlotStep> numbers,
                 Gradients* gradients);
  /// The evaluation's outputs for the samples.
  [[nodiscard]] std::vector<at::Tensor> predict(const CompiledSlot& slot, const Samples& samples);
  /// Bytes that one thread, or team, needs for the batch sizes met so far; the most of them where values are encoded.
  [[nodiscard]] std::int64_t workspace_bytes();

 private:
  struct Workspace;
  class Borrowed;
  [[nodiscard]] std::optional<SlotBounds> bounds_of(int row) const;
  void find_wanted(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                   std::span<const SlotStep> numbers, const SlotBounds& bounds) const;
  const cpu::CompiledGraph& plan_for(bool training, std::int64_t n);
  void bind(const cpu::CompiledGraph& plan, std::span<std::byte*> buffers, int row) const;
  std::span<std::byte*> run(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                            const Samples& samples, SlotBounds* bounds) const;
  [[nodiscard]] Gradients copied_gradients(const cpu::CompiledGraph& plan, std::span<std::byte* const> buffers) const;
  /// Loss and gradients become those of all ranks.
  template <typename T>
  void take_mean_over_ranks(const cpu::CompiledGraph& plan, Workspace& workspace, BatchLoss& loss) const;
  template <typename T>
  void learn(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot, BatchLoss& loss,
             std::span<const SlotStep> numbers) const;
  template <typename T>
  void accumulate(const cpu::CompiledGraph& plan, std::span<std::byte* const> buffers, int row, double weight,
                  bool updates) const;
  template <typename T>
  void update(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
              std::span<const SlotStep> numbers) const;

  const SpecializedGraph& training_;
  const SpecializedGraph& evaluation_;
  const std::vector<bool>& owned_;
  Recipe recipe_;
  int threads_, recompute_;
  BoundLayout bounds_;  ///< By weight; of a recipe that compresses.
  const SlotStore& store_;
  const std::vector<int>& group_of_;  ///< By weight.
  std::size_t phase_;                 ///< Of the store's states.
  std::size_t states_;                ///< Of the optimizer.
  Collectives* group_;                ///< Null: there are no other ranks.
  std::unique_ptr<const cpu::Library> library_;
  std::mutex mutex_;
  std::map<std::pair<bool, std::int64_t>, std::unique_ptr<const cpu::CompiledGraph>> plans_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace hfta::fusion
