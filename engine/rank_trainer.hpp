#pragma once
/// The interface of one rank of a device that has several: a trainer with further calls.

#include <optional>
#include <span>
#include <string>

#include "engine/division/division.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// A trainer that may be one of several ranks (TrainerOptions::group). Its arrays train as the partition's division
/// says: with the group, or alone.
class RankTrainer : public Trainer {
 public:
  /// Chooses how arrays of the partition will run, as open() would: what the other ranks recall.
  [[nodiscard]] virtual std::string choose(const trials::Params& params, double expected_epochs,
                                           const Pause& pause) = 0;
  /// PartitionPlan::width.
  [[nodiscard]] virtual int planned_width(const trials::Params& params) = 0;
  /// Why batches cannot be divided by these parts; "" if they can.
  [[nodiscard]] virtual std::string why_not_divided(const trials::Params& params, std::span<const int> parts) = 0;
  /// How arrays of the partition are shared: as recalled, or as this machine remembers; nullopt: that is not known,
  /// array.divide wants something else, or these data cannot be divided so. REQUIRES that choose() or recall() was
  /// called for the partition.
  [[nodiscard]] virtual std::optional<RankPlans> division(const trials::Params& params) = 0;
  /// Whether the study has trained the partition on whole batches so far, so that it keeps its bits only if it goes on
  /// so. REQUIRES as division().
  [[nodiscard]] virtual bool kept_batches_whole(const trials::Params& params) = 0;
  /// Times training steps, in arrays of its own, for window() each; `batches`: with parts of a batch, too. REQUIRES as
  /// division().
  [[nodiscard]] virtual RankTimes rank_times(const trials::Params& params, int width, bool batches) = 0;
  /// Times the exchange of the gradients of that many slots. All ranks call it at once.
  [[nodiscard]] virtual double exchange_seconds(const trials::Params& params, int width) = 0;
  /// The seconds of a step, over `steps` steps, of an array of that width that is shared by `division`. All call it at
  /// once, and get about the same.
  [[nodiscard]] virtual double tried_seconds(const trials::Params& params, int width, const Division& division,
                                             int steps) = 0;
  /// How long a timing should take, in seconds: a seventh of a fiftieth of the work ahead, as there are up to four
  /// sizes and three plans to time; 0.02 at least and 0.25 at most.
  [[nodiscard]] virtual double window(const trials::Params& params) = 0;
  /// Shares the partition's arrays by `plans` from now on. The machine remembers it, unless `pause` says that measuring
  /// was cut short, or the way to run was recalled, which is the study's and not what this machine would choose.
  virtual void divide(const trials::Params& params, const RankPlans& plans, const Pause& pause) = 0;
};

}  // namespace hfta::engine
