#pragma once
/// Which ended trials' weights a study keeps. The run, which writes and removes them, and doctor both ask here.

#include <vector>

#include "engine/config.hpp"
#include "engine/driver/goals/best_repetitions.hpp"
#include "engine/driver/goals/best_trials.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Those of its best trials (BestTrials) and those that its repetitions may still need (BestRepetitions). Not
/// thread-safe.
class KeptWeights {
 public:
  explicit KeptWeights(const StudyConfig& config);

  /// A trial has ended. To be called once for each, in any order. `values`: of a COMPLETE one, one per objective.
  /// Returns the trials whose weights are kept no longer, or, if this one is among them, never were.
  std::vector<int> end(int draw, int number, trials::State state, const std::vector<double>& values);
  [[nodiscard]] bool contains(int number) const { return best_.contains(number) || repetitions_.contains(number); }

 private:
  BestTrials best_;
  BestRepetitions repetitions_;
};

}  // namespace hfta::engine
