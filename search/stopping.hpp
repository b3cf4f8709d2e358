#pragma once
/// Rules of early stopping by name: the values that `early_stopping` in a config may have.
///
/// Every rule judges a trial by trials that were drawn before it, or in the order in which rungs were reached by draws,
/// never by what happened to be known at the time. So a study ends in the same table on any number of slots and
/// devices, however often it was killed.

#include <memory>
#include <string_view>
#include <vector>

#include "search/scheduler.hpp"
#include "trials/repetition.hpp"

namespace hfta::search {

/// Numbers of every rule; each reads its own (StoppingRule::reads).
struct StoppingOptions {
  int max_epochs = 1;  ///< Epochs of a trial that is not stopped: train.epochs.
  int min_epochs = 1;
  int min_trials = 5;
  int eta = 3;
  int confidence = 95;                   ///< Percent.
  trials::Repetitions repetitions = {};  ///< Of the study.
};

/// One field of StoppingOptions that a config may set. Its default is StoppingOptions'.
struct StoppingField {
  const char* name;
  int StoppingOptions::*field;
  int least;
  const char* sentence;
  int most = 1'000'000;
};
[[nodiscard]] const std::vector<StoppingField>& stopping_fields();

struct StoppingRule {
  const char* name;
  std::vector<std::string_view> reads;  ///< Names of stopping_fields().
  const char* sentence;
  /// `run_caps`: every cap the study ever had, ascending; not empty where the study has an end. Throws Error{kConfig}
  /// for impossible options.
  std::unique_ptr<Scheduler> (*make)(const StoppingOptions& options, trials::Goal goal,
                                     const std::vector<int>& run_caps);
  /// It compares repetitions of configurations: make() gives a scheduler of trials. Other rules judge configurations by
  /// their value, and know nothing of repetitions.
  bool compares_repetitions = false;
};

/// The first is "none".
[[nodiscard]] const std::vector<StoppingRule>& stopping_rules();
/// REQUIRES that there is one of that name.
[[nodiscard]] const StoppingRule& stopping_rule(std::string_view name);

/// The rungs of asha: epochs after which a trial is judged, the last of them max_epochs.
[[nodiscard]] std::vector<int> asha_rungs(const StoppingOptions& options);

/// The median rule of Golovin et al., "Google Vizier" (2017), section 3.2: a trial is stopped after an epoch e where
/// its best value so far is strictly worse than the median of the running means, up to e, of the trials drawn before it
/// that reached e. This applies from min_epochs on, and if there are at least min_trials such trials.
[[nodiscard]] std::unique_ptr<Scheduler> make_median(const StoppingOptions& options, trials::Goal goal,
                                                     const std::vector<int>& run_caps);

/// Asynchronous successive halving, Algorithm 2 of Li et al., "A System for Massively Parallel Hyperparameter Tuning"
/// (2020), by promotion: of the trials that have reached a rung, the best floor(n / eta) resume from their states,
/// the others wait. Trials count in the order of their draws at the first rung, and in the order of their promotion
/// at later rungs. A trial that can no longer be promoted is stopped; a rung that has promoted no trial promotes its
/// best trial once no other can reach it. The draws between two run_caps are compared only with each other.
[[nodiscard]] std::unique_ptr<Scheduler> make_asha(const StoppingOptions& options, trials::Goal goal,
                                                   const std::vector<int>& run_caps);

}  // namespace hfta::search
