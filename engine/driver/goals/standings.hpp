#pragma once
/// Who is best so far: trials that have ended, and unfinished ones as if they ended now.

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/config.hpp"
#include "trials/pareto.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The ranking of a study's trials by their values, and the Pareto front of several objectives. Trials are identified
/// by their draw. Not thread-safe.
class Standings {
 public:
  /// `config` must outlive this.
  explicit Standings(const StudyConfig& config) : config_(config) {}

  /// The trial would have that value of the first objective if it ended now; an earlier value counts no more. REQUIRES
  /// that the value is finite.
  void rank(int draw, double value);
  /// The trial has no value any more, or cannot be the best; does nothing if it is not ranked.
  void remove(int draw);
  /// The trial has ended: only a COMPLETE one stays ranked, or comes on the front.
  void end(int draw, const trials::Trial& trial);

  /// The best of the ranked trials, ties to the lower draw; unset if there is none, and of several objectives.
  [[nodiscard]] std::optional<int> leader() const;
  /// The numbers of the trials on the Pareto front, ascending; nullopt for a study of one objective.
  [[nodiscard]] std::optional<std::vector<int>> front() const;

  // `trials`: all of the study's trials by draw. The results point into it.
  /// The best repetition of the best configuration; of several objectives the Pareto front, by number. Empty if no
  /// trial is COMPLETE.
  [[nodiscard]] std::vector<const trials::Trial*> best_trials(const std::vector<trials::Trial>& trials) const;
  /// The value to compare a target with: the best COMPLETE trial's, or that of the best configuration all of whose
  /// repetitions have ended. Unset while there is none, and where there is no target.
  [[nodiscard]] std::optional<double> best_value(const std::vector<trials::Trial>& trials) const;

 private:
  [[nodiscard]] std::pair<double, int> place(int draw, double value) const;

  const StudyConfig& config_;
  std::map<int, double> values_;              ///< Values of the first objective by draw.
  std::set<std::pair<double, int>> ranking_;  ///< The place of each of values_: best first.
  trials::ParetoFront front_;                 ///< The front of several objectives.
};

}  // namespace hfta::engine
