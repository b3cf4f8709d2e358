#pragma once
/// A config's search as objects: the sampler, the scheduler, and the number of trials.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/config.hpp"
#include "search/sampler.hpp"
#include "search/scheduler.hpp"
#include "trials/repetition.hpp"

namespace hfta::engine {

struct Strategy {
  std::unique_ptr<search::Sampler> sampler;      ///< Draws configurations.
  std::unique_ptr<search::Scheduler> scheduler;  ///< Schedules trials; each repetition is a trial.
  std::optional<int> cap;                        ///< Most trials, by run_cap and the scheduler; unset: no limit.
  trials::Repetitions repetitions;
  bool stops_trials = false;  ///< Some trials end before their last epoch, though they have not failed.

  /// The number of all trials if `enqueued` configurations were not drawn by the sampler: a grid is tried completely
  /// besides them. Unset: no limit.
  [[nodiscard]] std::optional<int> trials(int enqueued = 0) const;
};

/// Runs `work`. An Error that it throws begins with the config's file, as what a task refuses does already.
void telling_file(const StudyConfig& config, const std::function<void()>& work);

/// `run_caps`: every cap the study ever had, in configurations, ascending; empty if it never had one.
/// Throws Error{kConfig} that names the config's file. `prior`: see prior_of(). `slots`: how many trials train side by
/// side, asked only when some have; unset: unknown.
[[nodiscard]] Strategy make_strategy(const StudyConfig& config, const std::vector<int>& run_caps,
                                     const search::History& prior = {}, std::function<int()> slots = {});

/// Draws a configuration behind the config's points, so that constraints that none meets are known before a study is
/// made.
void check_draws(const StudyConfig& config, const search::History& prior);

/// The caps of a study that has had `stored` and is now run with `config`'s run_cap. A config without one leaves the
/// caps as they are. Throws Error{kConfig} if the cap has become smaller.
[[nodiscard]] std::vector<int> next_caps(const std::vector<int>& stored, const StudyConfig& config);

}  // namespace hfta::engine
