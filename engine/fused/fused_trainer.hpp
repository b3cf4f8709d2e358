#pragma once
/// The real Trainer: trials of a study on fused arrays of one device.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/fused/trainer_parts.hpp"
#include "engine/fused/way_choices.hpp"
#include "engine/module.hpp"
#include "engine/rank_trainer.hpp"

namespace hfta::engine {

/// Answers by its parts, each of which keeps what it has found out. Used by one thread at a time.
class FusedTrainer : public RankTrainer {
 public:
  /// Copies the options. `files` and `clock` must outlive this, and this must outlive its arrays.
  FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock);

  void check(const trials::Params& params) override;
  [[nodiscard]] DeviceFacts device_facts() const override;
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) override;
  [[nodiscard]] std::vector<ModelFacts> models() const override { return parts_.models.all(); }
  [[nodiscard]] std::vector<DataFacts> data() const override { return parts_.data.facts(); }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override;
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override;
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

  // RankTrainer's functions (rank_times.cpp).
  [[nodiscard]] std::string choose(const trials::Params& params, double expected_epochs, const Pause& pause) override;
  [[nodiscard]] int planned_width(const trials::Params& params) override;
  [[nodiscard]] std::string why_not_divided(const trials::Params& params, std::span<const int> parts) override;
  [[nodiscard]] std::optional<RankPlans> division(const trials::Params& params) override;
  [[nodiscard]] bool kept_batches_whole(const trials::Params& params) override;
  [[nodiscard]] RankTimes rank_times(const trials::Params& params, int width, bool batches) override;
  [[nodiscard]] double exchange_seconds(const trials::Params& params, int width) override;
  [[nodiscard]] double tried_seconds(const trials::Params& params, int width, const Division& division,
                                     int steps) override;
  [[nodiscard]] double window(const trials::Params& params) override;
  void divide(const trials::Params& params, const RankPlans& plans, const Pause& pause) override;

  /// The task of a trial; throws Error{kConfig} if model and data do not fit each other.
  [[nodiscard]] PreparedTask prepare(const trials::Params& params) { return parts_.prepare(params); }

 private:
  TrainerParts parts_;
  const Clock& clock_;
  WayChoices choices_;
};

}  // namespace hfta::engine
