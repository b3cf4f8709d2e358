#pragma once
/// What a device of several ranks asks of each of them, beside what a trainer is asked.

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
  /// Why batches cannot be divided by these parts; "" if they can.
  [[nodiscard]] virtual std::string why_not_divided(const trials::Params& params, std::span<const int> parts) = 0;
  /// How arrays of the partition are shared: as recalled, or as this machine remembers; nullopt: that is not known, or
  /// array.divide wants something else. REQUIRES that choose() or recall() was called for the partition.
  [[nodiscard]] virtual std::optional<Division> division(const trials::Params& params) = 0;
  /// Times training steps, in arrays of its own, for a fiftieth of the work ahead and at most about a second. REQUIRES
  /// as division().
  [[nodiscard]] virtual RankTimes rank_times(const trials::Params& params, int width) = 0;
  /// Times the exchange of the gradients of that many slots. All ranks call it at once.
  [[nodiscard]] virtual double exchange_seconds(const trials::Params& params, int width) = 0;
  /// The seconds of a step in which the ranks share an array of that width so, over some steps. All ranks call it at
  /// once, and get about the same.
  [[nodiscard]] virtual double tried_seconds(const trials::Params& params, int width, const Division& division,
                                             int steps) = 0;
  /// For how long a plan should be tried, in seconds.
  [[nodiscard]] virtual double window(const trials::Params& params) = 0;
  /// From now on arrays of the partition are shared so; the machine remembers it.
  virtual void divide(const trials::Params& params, const RankPlans& plans) = 0;
};

}  // namespace hfta::engine
