#pragma once
/// Rules of early stopping by name: the values that `early_stopping` in a config may have.
///
/// A rule judges a trial by its own values, by trials that were drawn before it, or in the order in which rungs were
/// reached by draws, never by what happened to be known at the time. So a study ends in the same table on any number of
/// slots and devices, however often it was killed.

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "search/scheduler.hpp"
#include "trials/repetition.hpp"

namespace hfta::search {

/// The forms of asha: trials wait at a rung until they are promoted, or are stopped there.
enum class AshaMode { kPromote, kStop };

/// Options of all rules; each rule reads its own (StoppingRule::reads).
struct StoppingOptions {
  int max_epochs = 1;  ///< Epochs of a trial that is not stopped: train.epochs.
  int min_epochs = 1;
  int min_trials = 5;
  int eta = 3;
  AshaMode mode = AshaMode::kPromote;
  double percentile = 25;
  int patience = 5;
  double min_delta = 0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  std::optional<double> value = {};  ///< Value that completes a trial; target has to have one.
  std::optional<int> max_iter = {};  ///< W&B's number for bands, positive; unset: bands from min_epochs on.
  int s = 0;                         ///< W&B's number of bands below max_iter.
  int confidence = 95;               ///< Percent, for racing.
};

/// One field of StoppingOptions that a config may set. Its default is StoppingOptions'.
struct StoppingField {
  const char* name;
  std::variant<int StoppingOptions::*, double StoppingOptions::*, AshaMode StoppingOptions::*,
               std::optional<int> StoppingOptions::*, std::optional<double> StoppingOptions::*>
      field;
  double least, most;
  const char* sentence;
  const char* fallback = nullptr;         ///< Its default in words; nullptr: as a number. "": there is none.
  std::vector<std::string> choices = {};  ///< Words for an enumeration's values, in order; empty: it is a number.
};
[[nodiscard]] const std::vector<StoppingField>& stopping_fields();
/// The value of a field, as a config has it: for an integer that is unset 0, for a number that is unset or infinite "".
[[nodiscard]] std::string text_of(const StoppingField& field, const StoppingOptions& options);

/// A trial as it is seen by a rule that judges it by its own values alone.
struct OwnValues {
  int epoch = 0;
  double value = 0;  ///< The value after that epoch; finite.
  int best_at = 0;   ///< The last epoch whose value was better than all before it, by more than min_delta.
};

struct StoppingRule {
  const char* name;
  std::vector<std::string_view> reads = {};  ///< Names of stopping_fields().
  const char* sentence;
  /// `run_caps`: every cap the study ever had, ascending; not empty where the study has an end. Throws Error{kConfig}
  /// for impossible options. nullptr where `judge` is set.
  std::unique_ptr<Scheduler> (*make)(const StoppingOptions& options, trials::Goal goal,
                                     const std::vector<int>& run_caps);
  /// The decision of a rule that judges a trial by its own values: kContinue, kStop or kComplete. kStop may depend on
  /// epoch and value alone.
  Decision (*judge)(const OwnValues& trial, const StoppingOptions& options, trials::Goal goal) = nullptr;
  bool completes = false;  ///< `judge` may say kComplete.
  /// Makes the scheduler of trials for a rule that compares the repetitions of configurations. Other rules judge a
  /// configuration by its value (make_repeated), and know nothing of repetitions. Throws Error{kConfig} for impossible
  /// options.
  std::unique_ptr<Scheduler> (*compare)(const StoppingOptions& options, const trials::Repetitions& repetitions,
                                        trials::Goal goal) = nullptr;
};

/// All rules; the first is "none".
[[nodiscard]] const std::vector<StoppingRule>& stopping_rules();
/// REQUIRES that there is one of that name.
[[nodiscard]] const StoppingRule& stopping_rule(std::string_view name);

/// Whether the rule reads the field of that name.
[[nodiscard]] bool reads(const StoppingRule& rule, std::string_view field);

/// One rule of a study, with its options.
struct Stopping {
  std::string rule = "none";
  StoppingOptions options = {};
};
/// The fields that the rule reads and that have a value: name and text_of().
[[nodiscard]] std::vector<std::pair<std::string, std::string>> fields_read(const Stopping& stopping);

/// The scheduler for several rules: a trial ends when any of them says so. A trial that one rule has stopped counts
/// for the others as one that failed then: values that it reported before still rank. One that a threshold stops does
/// not rank at that epoch any more. `max_epochs` replaces the options'. Throws Error{kConfig} for impossible options.
[[nodiscard]] std::unique_ptr<Scheduler> make_stopping(const std::vector<Stopping>& rules, int max_epochs,
                                                       trials::Goal goal, const std::vector<int>& run_caps);
/// make_stopping() beside a method that stops trials itself. Throws Error{kConfig} for a rule that does not judge a
/// trial by its own values alone.
[[nodiscard]] std::unique_ptr<Scheduler> make_stopping_beside(std::unique_ptr<Scheduler> method,
                                                              const std::vector<Stopping>& rules, trials::Goal goal);

/// The rungs of asha and sha: epochs after which a trial is judged, the last of them max_epochs.
[[nodiscard]] std::vector<int> asha_rungs(const StoppingOptions& options);
/// The draws [first, end) that each of the study's caps added, ascending: rungs compare only draws of one cap.
/// Throws Error{kConfig} where there is none, or they do not ascend from 1.
[[nodiscard]] std::vector<std::pair<int, int>> draws_by_cap(const std::vector<int>& run_caps);
/// The epochs after which `bands` judges, ascending, below max_epochs: min_epochs * eta^i, or with max_iter
/// floor(max_iter / eta^i) for i from 1 to s.
[[nodiscard]] std::vector<int> bands_of(const StoppingOptions& options);

/// The median rule of Golovin et al., "Google Vizier" (2017), section 3.2: a trial is stopped after an epoch e where
/// its best value so far is strictly worse than the median of the running means, up to e, of the trials drawn before it
/// that reached e. This applies from min_epochs on, and if there are at least min_trials such trials.
[[nodiscard]] std::unique_ptr<Scheduler> make_median(const StoppingOptions& options, trials::Goal goal,
                                                     const std::vector<int>& run_caps);

/// Optuna's PercentilePruner: a trial is stopped after an epoch e where its best value so far is strictly worse than
/// that percentile (counted from the best, between ranks linear) of the values after e of the trials drawn before it
/// that reached e. This applies from min_epochs on, and if there are at least min_trials such trials.
[[nodiscard]] std::unique_ptr<Scheduler> make_percentile(const StoppingOptions& options, trials::Goal goal,
                                                         const std::vector<int>& run_caps);

/// Asynchronous successive halving, Algorithm 2 of Li et al., "A System for Massively Parallel Hyperparameter Tuning"
/// (2020), by promotion: of the trials that have reached a rung, the best floor(n / eta) resume from their states,
/// the others wait. Trials count in the order of their draws at the first rung, and in the order of their promotion
/// at later rungs. A trial that can no longer be promoted is stopped; a rung that has promoted no trial promotes its
/// best trial once no other can reach it. The draws between two run_caps are compared only with each other.
[[nodiscard]] std::unique_ptr<Scheduler> make_asha(const StoppingOptions& options, trials::Goal goal,
                                                   const std::vector<int>& run_caps);

/// The form of asha that stops, as Optuna's SuccessiveHalvingPruner has it: of the n trials that were drawn up to this
/// one and reached the rung, this one included, it goes on if it is among the best max(1, floor(n / eta)), ties
/// included; else it is stopped at once.
[[nodiscard]] std::unique_ptr<Scheduler> make_asha_stopping(const StoppingOptions& options, trials::Goal goal);

/// Successive halving (Jamieson and Talwalkar, AISTATS 2016) as one bracket: every trial trains min_epochs; when all
/// have, the best floor(n / eta) train eta times as long, and so on, the last until max_epochs. The draws between two
/// run_caps are a bracket of their own. Throws Error{kConfig} without a run_cap.
[[nodiscard]] std::unique_ptr<Scheduler> make_sha(const StoppingOptions& options, trials::Goal goal,
                                                  const std::vector<int>& run_caps);

/// W&B's `early_terminate: {type: hyperband}`: at each band a trial is stopped whose best value so far is strictly
/// worse than the (1 + floor(n / eta))-th best of those of the n trials that were drawn up to this one and reached the
/// band, this one included.
[[nodiscard]] std::unique_ptr<Scheduler> make_bands(const StoppingOptions& options, trials::Goal goal,
                                                    const std::vector<int>& run_caps);

}  // namespace hfta::search
