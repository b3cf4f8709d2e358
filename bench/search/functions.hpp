#pragma once
/// Functions with a known least value, to measure samplers on. optuna_regret.py has those that never fail.

#include <string>
#include <vector>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::bench {

struct Function {
  std::string name;
  trials::Space space;
  double (*value)(const trials::Params& params);  ///< To be minimized.
  double least;                                   ///< Of all that do not fail.
  bool (*fails)(const trials::Params& params) =
      nullptr;  ///< Where there is no value; nullptr: there is one everywhere.
};

/// Branin (2 numbers) and Hartmann6 (6 numbers), as in Surjanovic and Bingham's library of simulation experiments
/// (sfu.ca/~ssurjano/optimization.html); and `mixed`: a logarithmic rate, a logarithmic integer, a number in steps and
/// one of four words, each with its own share of the loss, as in training a network. Then two that fail: `branin_disk`
/// beyond a disk, in which one of Branin's three minima lies (Gelbart, Snoek and Adams, "Bayesian Optimization with
/// Unknown Constraints", UAI 2014), and `mixed_diverges` at rates above a third of the best.
[[nodiscard]] const std::vector<Function>& functions();

}  // namespace hfta::bench
