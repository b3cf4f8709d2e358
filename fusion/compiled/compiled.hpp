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
  struct Step;
  enum class Purpose { kPredict, kTrain, kTrainApplying };
  [[nodiscard]] std::optional<SlotBounds> bounds_of(int row) const;
  const cpu::CompiledGraph& plan_for(Purpose purpose, std::int64_t n);
  [[nodiscard]] cpu::CompiledGraph compiled(Purpose purpose, std::int64_t n) const;
  void bind(const cpu::CompiledGraph& plan, std::span<std::byte*> buffers, int row) const;
  cpu::Run run(const cpu::CompiledGraph& plan, Workspace& workspace, const CompiledSlot& slot, const Samples& samples,
               SlotBounds* bounds, const cpu::Apply* apply) const;
  [[nodiscard]] static BatchLoss loss_of(const Step& step, const cpu::Run& run);
  [[nodiscard]] Gradients copied_gradients(const cpu::CompiledGraph& plan, const cpu::Run& run) const;
  void learn(const Step& step, const cpu::Run& run, BatchLoss& loss) const;
  /// Loss and gradients become those of all ranks.
  template <typename T>
  void take_mean_over_ranks(const Step& step, const cpu::Run& run, BatchLoss& loss) const;
  template <typename T>
  void accumulate(const Step& step, const cpu::Run& run, double weight) const;
  /// The optimizer's step of these gradients' weights, and what is found out behind it.
  void apply(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;
  template <typename T>
  void exchange(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;
  template <typename T>
  void take_means(const Step& step, const cpu::Run& run, bool all) const;
  void end_exchange(const Step& step, const cpu::Run& run, BatchLoss& loss) const;
  /// `mean`: of all ranks, in place of the gradients, one behind another; empty: these.
  template <typename T>
  void update(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients,
              std::span<const T> mean) const;
  void find_wanted(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;

  const SpecializedGraph& training_;
  const SpecializedGraph& evaluation_;
  const std::vector<bool>& owned_;
  Recipe recipe_;
  int threads_, recompute_;
  Purpose train_;       ///< How slots train where nobody wants to see their gradients.
  BoundLayout bounds_;  ///< By weight; of a recipe that compresses.
  const SlotStore& store_;
  const std::vector<int>& group_of_;  ///< By weight.
  std::size_t phase_;                 ///< Of the store's states.
  std::size_t states_;                ///< Of the optimizer.
  Collectives* group_;                ///< Null: there are no other ranks.
  std::unique_ptr<const cpu::Library> library_;
  std::mutex mutex_;
  std::map<std::pair<Purpose, std::int64_t>, std::unique_ptr<const cpu::CompiledGraph>> plans_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace hfta::fusion
