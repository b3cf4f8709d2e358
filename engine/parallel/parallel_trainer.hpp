#pragma once
/// One device made of several: each array is trained by all of them, data parallel, slot by slot, or as a pipeline.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/parallel/ranks.hpp"
#include "engine/parallel/requests.hpp"
#include "engine/rank_trainer.hpp"

namespace hfta::engine {

/// The trainer of rank 0, which the driver talks to, keeps to the driver's contract; the other ranks follow.
///
/// How ranks share the arrays of a partition is decided when the first of them is opened: all ranks time steps at once,
/// at the width that is planned, and of the plans that are made from that (engine/division/division.hpp) the one is
/// taken that is fastest when it is tried; stages of a pipeline, which have to be asked for, are not timed, as the
/// whole model may be too large for one rank. It is recorded with the way to run, so that a study that goes on shares
/// its arrays as before. Slots are divided anew where another width is planned than they were divided for: no bit
/// depends on that.
class ParallelTrainer final : public Trainer {
 public:
  /// `start`: starts the members, in one group with `own`'s arrays; called when the first array is opened, so that
  /// what only plans starts none. `partition`: StudyConfig::partition.
  ParallelTrainer(std::unique_ptr<RankTrainer> own, std::function<Members()> start, int ranks, const std::string& label,
                  Divide divide, std::function<std::string(const trials::Params&)> partition)
      : ranks_(std::move(start), ranks, label),
        own_(std::move(own)),
        divide_(divide),
        partition_(std::move(partition)) {}

  [[nodiscard]] DeviceFacts device_facts() const override;
  void check(const trials::Params& params) override { own_->check(params); }
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override { return own_->plan(params); }
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) override {
    return own_->measure(params, pause);
  }
  [[nodiscard]] std::vector<ModelFacts> models() const override { return own_->models(); }
  [[nodiscard]] std::vector<DataFacts> data() const override { return own_->data(); }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override {
    return own_->recall(partition, choices_json);
  }
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override;
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

 private:
  /// The division that is known for the partition, if it still holds.
  [[nodiscard]] std::optional<Division> known(const trials::Params& params, int width);
  /// The setting to decide by: array.divide, or kSlots where `auto` must not divide batches.
  [[nodiscard]] Divide divide_for(const trials::Params& params);
  [[nodiscard]] Division decided(const trials::Params& params, int width, const std::string& choices,
                                 const Pause& pause);
  /// All plans but that of stages; those that `divide` asks for are tried.
  [[nodiscard]] std::vector<RankPlan> plans_tried(const trials::Params& params, int width, const std::string& choices,
                                                  Divide divide, const Pause& pause);
  [[nodiscard]] RankQuestion measured(const trials::Params& params, int width, const ArrayWanted& wanted);
  [[nodiscard]] double tried(const trials::Params& params, int width, const RankPlan& plan, const ArrayWanted& wanted);

  Ranks ranks_;
  std::unique_ptr<RankTrainer> own_;
  Divide divide_;
  std::function<std::string(const trials::Params&)> partition_;
};

}  // namespace hfta::engine
