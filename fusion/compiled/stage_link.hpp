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
/// that slots do not wait for each other. None of the calls that wait for a stage may be made in a turn: that stage may
/// wait for the turn.
class StageLink {
 public:
  /// One slot's run of a stage.
  struct Run {
    const cpu::CompiledStage& stage;
    std::span<std::byte* const> buffers;  ///< Buffers of its plan.
    int row = 0;                          ///< The slot's row.
    std::vector<std::byte>& message;      ///< Memory for messages.
    std::span<double> squares;            ///< Learning::Step::squares.
  };

  /// `turns`: how many slots compute at a time.
  StageLink(const Pipeline& pipeline, int turns)
      : pipeline_(pipeline), turns_(turns), places_(slots_of_stage(turns, pipeline.cut.stages)) {}

  /// A slot is in the stage from the begin of its batch's forward on; it needs memory there. One that is clipped leaves
  /// the first stage first, others the last one; no order of these is a circle of slots that wait. Who waits for a
  /// place has one in the stage before, where there are as many: so if none is left here, somebody has left there, and
  /// waits for later stages alone.
  [[nodiscard]] Turns& places() { return places_; }
  /// Slots in their backward come first: they free memory, and the stage before waits for them (the order 1F1B of
  /// D. Narayanan et al., PipeDream, 2019, section 3.2).
  [[nodiscard]] Turns& turns() { return turns_; }

  /// Waits until the stage before has run the slot's forward.
  void await(int row) const;
  /// Takes what the forward reads of the stage before.
  void receive(const Run& run) const;
  /// Packs what the stage behind reads, when the forward has run, and sends it if that waits for nobody: in the slot's
  /// turn, lest it wait for the next one's. False: it is left to send().
  [[nodiscard]] bool send_at_once(const Run& run) const;
  void send(const Run& run) const;
  /// Waits for the gradients, the squares and the batch's loss of the stage behind. Not in the last stage.
  [[nodiscard]] BatchLoss take_back(const Run& run) const;
  /// Packs gradients, squares and loss for the stage before, when the backward has run, and sends them if that waits
  /// for nobody. False: they are left to give_back().
  [[nodiscard]] bool give_back_at_once(const Run& run, const BatchLoss& loss) const;
  void give_back(const Run& run) const;
  /// The factor on the gradients of a slot with squares, when they were given back: the first stage has those of all
  /// stages and finds it, and it goes from stage to stage. Equal bits in all of them, and those of one device.
  [[nodiscard]] double agree_on_factor(const Run& run, double clip_norm) const;

 private:
  const Pipeline& pipeline_;
  Turns turns_, places_;
};

}  // namespace hfta::fusion
