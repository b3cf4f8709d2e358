#pragma once
/// A trial: its parameters, its state and what was measured of it. Plain values, shared by search, storage and
/// engine.

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hfta::trials {

/// One parameter's value: null, boolean, integer, number or word, as YAML 1.2's core schema tells them apart.
using ParamValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

/// Parameters of one trial, in the order of the config.
using Params = std::vector<std::pair<std::string, ParamValue>>;

/// Optuna's trial states, by Optuna's names. A paused trial is kRunning.
enum class State { kRunning, kComplete, kPruned, kFail, kWaiting };

/// Wall time in UTC, stored for people only; never compared to decide anything.
using UtcTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

/// Every metric of one trial at the end of one of its epochs.
struct EpochRecord {
  int epoch = 0;                               ///< 1-based: epochs trained so far.
  std::map<std::string, double> metrics = {};  ///< Values by name (train_loss, ...); may hold NaN and infinities.
};

/// After `epoch` epochs the trial went on from a copy of trial `source`, as that stood then, with `params`.
struct Copy {
  int epoch = 0;
  int source = 0;  ///< Number of the source trial.
  Params params = {};
  bool operator==(const Copy&) const = default;
};

/// The first objective's of a trial's values; nullopt if there are none.
[[nodiscard]] std::optional<double> first_of(const std::vector<double>& values);

/// A trial and everything recorded of it.
struct Trial {
  int number = 0;                 ///< Optuna's number: 0-based position in its study.
  Params params = {};             ///< Parameters that it began with.
  std::vector<Copy> copies = {};  ///< Ascending by epoch.
  State state = State::kRunning;
  bool enqueued = false;            ///< Taken from Optuna's queue (enqueue_trial), not drawn by the sampler.
  bool feasible = true;             ///< Meets the constraints that another program has evaluated by Optuna.
  std::vector<double> values = {};  ///< Of the study's objectives, in order; empty while unknown and for FAIL.
  std::string reason = {};          ///< Why it failed; empty otherwise.
  /// Number of the study's rounds that were over when we drew it; set only if the method learns.
  std::optional<int> seen_rounds = {};
  /// Round after which it ended or, if it ended in no slot, before which; set only if we drew it and the method learns.
  std::optional<int> ended_round = {};
  std::vector<EpochRecord> epochs = {};             ///< Ascending by epoch.
  std::map<std::string, double> test_metrics = {};  ///< test_*: only of the best trial of a finished study.
  std::optional<UtcTime> started = {};
  std::optional<UtcTime> completed = {};

  /// The value of the study's first objective; nullopt while there are no values.
  [[nodiscard]] std::optional<double> value() const { return first_of(values); }
};

/// Whether larger or smaller values of the metric are better.
enum class Goal { kMinimize, kMaximize };

/// "minimize" or "maximize".
[[nodiscard]] const char* name_of(Goal goal);

/// A metric that a study optimises.
struct Objective {
  std::string metric = {};  ///< Its recorded name: val_accuracy, ...
  Goal goal = Goal::kMinimize;
  bool operator==(const Objective&) const = default;
};
/// A study's objectives, at least one. One objective orders all trials, several only in part (trials/pareto.hpp).
using Objectives = std::vector<Objective>;

/// "RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING".
[[nodiscard]] const char* name_of(State state);

/// The state of that name; throws Error{kStorage} for any other word.
[[nodiscard]] State state_from(const std::string& name);

/// A value as people read it: words bare, numbers in their shortest round-trip form.
[[nodiscard]] std::string to_text(const ParamValue& value);

/// True if `a` is strictly better than `b`. Any number is better than NaN; two NaNs are equal.
[[nodiscard]] bool better(double a, double b, Goal goal);

/// The parameters that it was trained with last, or is to be trained with next: those of its last copy, if it has one.
[[nodiscard]] const Params& latest_params(const Trial& trial);

/// The value by which a trial may be the best of a study of one objective, as Optuna takes it: of a COMPLETE, feasible
/// trial, finite or not; nullopt for any other trial, and for NaN.
[[nodiscard]] std::optional<double> value_to_rank(const Trial& trial);

/// The trial with the best value_to_rank(), ties to the lower number; nullptr if there is none.
[[nodiscard]] const Trial* best_of(const std::vector<Trial>& trials, Goal goal);
/// Why none of the trials is the best one: "no trial is COMPLETE".
[[nodiscard]] std::string_view why_none_is_best(const std::vector<Trial>& trials);

}  // namespace hfta::trials
