#pragma once
/// The configurations that the sampler draws, and the results that draws follow from.

#include <optional>
#include <vector>

#include "engine/config.hpp"
#include "engine/driver/draws/draw_history.hpp"
#include "search/sampler.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// A study's sampler with the history that it is asked with, kept only where it matters. Trials are identified by
/// their draw. Not thread-safe.
class Draws {
 public:
  /// Both must outlive this.
  Draws(const StudyConfig& config, search::Sampler& sampler);

  /// Whether trials are drawn only when slots are free: draws depend on the results of earlier trials, or the study may
  /// end before all trials are done, which must not depend on what was planned.
  [[nodiscard]] bool wait_for_slots() const { return wait_for_slots_; }
  /// Whether draws depend on the results of earlier trials (Sampler::learns()).
  [[nodiscard]] bool follow_results() const { return sampler_.learns(); }
  /// Whether the sampler had fewer configurations than it was last asked for.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

  /// Draws `k` configurations from the `first` on, fewer when the space is exhausted. `rounds`: the study's rounds that
  /// are over. `like`: parameters of a trial, of whose partition the configurations are if the sampler finds such ones;
  /// null: of any.
  [[nodiscard]] std::vector<trials::Params> ask(int first, int k, int rounds, const trials::Params* like);

  // What happens to trials, in the order in which it happens.
  /// The study has one more trial.
  void add(const trials::Params& params);
  /// The latest trial, which has neither begun nor ended, is gone: it is drawn again.
  void take_back();
  /// The sampler may be asked again, though it was exhausted.
  void ask_again() { exhausted_ = false; }
  /// See DrawHistory::report().
  void report(int draw, bool diverged, const std::vector<double>& values);
  /// See DrawHistory::end().
  void end(int draw, trials::State state, std::optional<int> round);

 private:
  [[nodiscard]] std::vector<trials::Params> sampled(int first, int k, int rounds, const trials::Params* like);

  const StudyConfig& config_;
  search::Sampler& sampler_;
  bool wait_for_slots_;
  DrawHistory history_;  ///< Empty unless `wait_for_slots_`.
  bool exhausted_ = false;
};

}  // namespace hfta::engine
