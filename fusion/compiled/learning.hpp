#pragma once
/// What compiled slots do with their gradients: sums over batches, means over ranks, the optimizer's step, and what
/// bounds of encoded values are found from. Internal to this room.

#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "fusion/codec/slot_bounds.hpp"
#include "fusion/collectives/gradient_mean.hpp"
#include "fusion/cpu/compiled_graph.hpp"
#include "fusion/execution/executor.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/slots/slot_store.hpp"

namespace hfta::fusion {

/// One slot for one run.
struct CompiledSlot {
  int row = 0;  ///< The slot's row in the SlotStore.
  SlotRandom random;
  std::span<const double> hypers;
  Team* team = nullptr;  ///< Who shares the work; null: the caller alone. Results are equal bits.
  bool counts = true;    ///< Batch::counts
};

/// Any number of threads may call it at once, for different slots, each with a Memory of its own.
class Learning {
 public:
  /// What a thread, or a team, works with; kept from step to step.
  class Memory;
  /// One slot's step.
  struct Step {
    const cpu::CompiledGraph& plan;
    const CompiledSlot& slot;
    std::span<const SlotStep> numbers;  ///< By group.
    double samples;
    Memory& memory;
    SlotBounds* bounds;                       ///< Null: nothing is encoded.
    std::optional<BatchLoss> loss_elsewhere;  ///< Loss that another stage of a pipeline has computed.
    // Used for a slot that is clipped by the gradients of all stages of a pipeline, in its optimizer's step:
    std::span<double> squares;     ///< By weight: sums of squares of its gradient; empty: no such slot.
    std::optional<double> factor;  ///< What end_clipped() multiplies the gradients by.
  };

  /// `recipe`, `bounds`: those of the model. Refers to its arguments.
  Learning(const ExecutorModel& model, const Recipe& recipe, const BoundLayout& bounds);

  [[nodiscard]] std::unique_ptr<Memory> make_memory() const;

  /// Call it before the step's run.
  void begin(const Step& step) const;
  /// Takes gradients that are complete, during the run (Run::apply).
  void take(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;
  /// Does what is left to do after the run, with CompiledGraph::gradients if the plan has some. Returns the batch's
  /// loss before the step; with ranks, of all their samples. With Step::squares it puts those of this stage's weights
  /// there, and the optimizer's step is left to end_clipped().
  BatchLoss end(const Step& step, const cpu::Run& run) const;
  void end_clipped(const Step& step, const cpu::Run& run) const;

 private:
  void apply(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;
  template <typename T>
  void find_squares(const Step& step, const cpu::Run& run) const;
  template <typename T>
  void accumulate(const Step& step, const cpu::Run& run, double weight) const;
  template <typename T>
  [[nodiscard]] BatchLoss take_mean_over_ranks(const Step& step, const cpu::Run& run) const;
  template <typename T>
  void exchange(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;
  template <typename T>
  void take_means(const Step& step, const cpu::Run& run, bool all) const;
  template <typename T>
  [[nodiscard]] BatchLoss end_exchange(const Step& step, const cpu::Run& run) const;
  /// `mean`: means over all ranks, one behind another, used in place of the gradients; empty: these are used.
  template <typename T>
  void update(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients,
              std::span<const T> mean) const;
  void find_wanted(const Step& step, const cpu::Run& run, std::span<const cpu::WeightGradient> gradients) const;

  const Recipe& recipe_;
  const BoundLayout& bounds_;
  const SlotStore& store_;
  const std::vector<int>& group_of_;  ///< By weight.
  std::size_t phase_;                 ///< Phase of the store's states.
  std::size_t states_;                ///< Number of the optimizer's states.
  Collectives* group_;                ///< Null: there are no other ranks.
};

class Learning::Memory {
 private:
  friend class Learning;
  template <typename T>
  struct Typed {
    std::vector<SlotRow<T>> rows;
    std::optional<MeanInPieces<T>> means;  // over ranks, if there are others
  };
  template <typename T>
  Typed<T>& of() {
    return std::get<Typed<T>>(typed_);
  }

  std::tuple<Typed<float>, Typed<double>> typed_;
  std::vector<GradientScale> scales_;                         // by weight, where the step measures
  std::vector<double> per_gradient_;                          // by group: state_per_gradient(), in such steps
  std::vector<std::span<const cpu::WeightGradient>> pieces_;  // whose means over ranks are under way
};

}  // namespace hfta::fusion
