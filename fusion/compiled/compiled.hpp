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
#include "fusion/compiled/learning.hpp"
#include "fusion/compiled/plans.hpp"
#include "fusion/compiled/stage_link.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/cpu/library.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/slots/slot_store.hpp"

namespace hfta::fusion {

/// Any number of threads may call it at once, for different slots. A call allocates nothing once its batch size has
/// been met by as many threads. With ExecutorModel::pipeline it runs this rank's stage, and a call returns when the
/// other stages have done their part.
class CompiledModel {
 public:
  /// Compiles for the recipe's batch size, others when they come, and for teams of at most so many threads.
  /// `recompute`: Lowering::recompute. Throws Error{kConfig} naming an op that cannot be compiled.
  CompiledModel(const ExecutorModel& model, int threads, int recompute);
  ~CompiledModel();

  /// Runs a batch and an optimizer step with the slot's numbers by group; returns the loss before the step, with ranks
  /// that over all their samples. `gradients` (null: not wanted) gets those of the trained weights over these samples,
  /// in a stage those of its own weights.
  BatchLoss step(const CompiledSlot& slot, const Samples& samples, std::span<const SlotStep> numbers,
                 Gradients* gradients);
  /// The evaluation's outputs for the samples; none in a stage before the last.
  [[nodiscard]] std::vector<at::Tensor> predict(const CompiledSlot& slot, const Samples& samples);
  /// Bytes that one thread, or team, needs for the batch sizes met so far; the most of them where values are encoded.
  [[nodiscard]] std::int64_t workspace_bytes();

 private:
  struct Workspace;
  class Borrowed;
  [[nodiscard]] std::optional<SlotBounds> bounds_of(int row) const;
  /// `use`: none for predictions.
  const cpu::CompiledStage& plan_for(std::optional<GradientUse> use, std::int64_t n);
  [[nodiscard]] cpu::CompiledStage compiled(std::optional<GradientUse> use, std::int64_t n) const;
  void bind(const cpu::CompiledGraph& plan, std::span<std::byte*> buffers, int row) const;
  [[nodiscard]] cpu::Run begin(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot,
                               const Samples& samples) const;
  void enter_stage(int row, std::optional<Turns::Turn>& place);
  void forward(const cpu::CompiledStage& stage, const cpu::Run& run, const StageLink::Run& here);
  BatchLoss backward(const cpu::CompiledStage& stage, const cpu::Run& run, const StageLink::Run& here,
                     Learning::Step& step, Gradients* gradients);
  [[nodiscard]] std::span<double> squares_for(std::span<const SlotStep> numbers, Workspace& workspace) const;
  [[nodiscard]] Gradients copied_gradients(const cpu::CompiledGraph& plan, const cpu::Run& run) const;

  const SpecializedGraph& training_;
  const SpecializedGraph& evaluation_;
  const std::vector<bool>& owned_;
  Recipe recipe_;
  int threads_, recompute_;
  GradientUse use_;     ///< Use of gradients in steps that need not return them.
  BoundLayout bounds_;  ///< Bounds by weight; none unless the recipe compresses.
  const SlotStore& store_;
  Learning learning_;
  const Pipeline* pipeline_;
  std::optional<StageLink> link_;  ///< Link to the stages beside this one, in a pipeline.
  std::unique_ptr<const cpu::Library> library_;
  std::mutex mutex_;
  std::map<std::pair<std::optional<GradientUse>, std::int64_t>, std::unique_ptr<const cpu::CompiledStage>> plans_;
  std::vector<std::unique_ptr<Workspace>> idle_;
  int workspaces_ = 0;  ///< Idle ones, and those that are lent.
};

}  // namespace hfta::fusion
