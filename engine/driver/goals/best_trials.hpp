#pragma once
/// The best trials of a study, which its weights are kept of.

#include <cstddef>
#include <vector>

#include "trials/pareto.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// The best of the COMPLETE trials added, ties to the lower number: the trials whose weights are kept. With
/// several objectives: the Pareto front.
class BestTrials {
 public:
  /// Keeps at most `keep` trials, and at least one, which is tested when the study ends; of several objectives the
  /// whole front, which is tested then, however large.
  BestTrials(int keep, trials::Objectives objectives);
  /// `values`: one per objective; of several objectives a trial without a point (trials/pareto.hpp) is never among the
  /// best. Returns the numbers of the trials that are no longer among the best, which may be this one.
  std::vector<int> add(int number, const std::vector<double>& values);
  [[nodiscard]] bool contains(int number) const;
  /// The trials' numbers, best first; with several objectives ascending.
  [[nodiscard]] std::vector<int> numbers() const;

 private:
  struct Kept {
    double value;
    int number;
  };
  std::vector<int> add_to_best(int number, double value);

  std::size_t most_;
  trials::Objectives objectives_;
  std::vector<Kept> best_;     ///< For one objective: the best trials, best first, at most `most_`.
  trials::ParetoFront front_;  ///< For several objectives: the Pareto front.
};

}  // namespace hfta::engine
