#pragma once
/// What a stage of a pipeline tells those beside it while slots train there. Internal to this room.

#include <cstddef>
#include <span>
#include <vector>

#include "fusion/collectives/gradient_mean.hpp"
#include "fusion/compiled/turns.hpp"
#include "fusion/cpu/compile.hpp"
#include "fusion/execution/pipeline.hpp"

namespace hfta::fusion {

/// Any number of threads may call it at once, for different slots. A slot's messages travel on the lane of its row, so
/// that slots do not wait for each other. Of the calls that wait for a stage, none does so in a turn.
class StageLink {
 public:
  /// One slot's run of a stage.
  struct Run {
    const cpu::CompiledStage& stage;
    std::span<std::byte* const> buffers;  ///< Of its plan.
    int row = 0;                          ///< The slot's.
    std::vector<std::byte>& message;      ///< Memory.
  };

  /// `turns`: how many slots compute at a time.
  StageLink(const Pipeline& pipeline, int turns)
      : pipeline_(pipeline), turns_(turns), places_(slots_of_stage(turns, pipeline.cut.stages)) {}

  /// A slot is in the stage from the begin of its batch's forward on; it needs memory there.
  [[nodiscard]] Turns& places() { return places_; }
  /// Those that go back come first: they free memory, and the stage before waits for them (the order 1F1B of
  /// D. Narayanan et al., PipeDream, 2019, section 3.2).
  [[nodiscard]] Turns& turns() { return turns_; }

  /// Waits until the stage before has run the slot's forward.
  void await(int row) const;
  /// Takes what the forward reads of the stage before.
  void receive(const Run& run) const;
  /// Sends what the stage behind reads, when the forward has run.
  void send(const Run& run) const;
  /// Waits for the gradients and the batch's loss of the stage behind. Not in the last stage.
  [[nodiscard]] BatchLoss take_back(const Run& run) const;
  /// Sends gradients and loss to the stage before, when the backward has run.
  void give_back(const Run& run, const BatchLoss& loss) const;
  /// Whether such messages are sent without waiting for who receives them: then they are sent in the slot's turn, lest
  /// they wait for the next one's.
  [[nodiscard]] bool sends_at_once(const std::vector<cpu::Tensor>& tensors) const;

 private:
  const Pipeline& pipeline_;
  Turns turns_, places_;
};

}  // namespace hfta::fusion
