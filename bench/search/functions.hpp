#pragma once
/// Functions with a known least value, to measure samplers on. optuna_regret.py has the same ones.

#include <string>
#include <vector>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::bench {

struct Function {
  std::string name;
  trials::Space space;
  double (*value)(const trials::Params& params);  ///< To be minimized.
  double least;                                   ///< Over the space.
};

/// Branin (2 numbers) and Hartmann6 (6 numbers), as in Surjanovic and Bingham's library of simulation experiments
/// (sfu.ca/~ssurjano/optimization.html); and `mixed`: a logarithmic rate, a logarithmic integer, a number in steps and
/// one of four words, each with its own share of the loss, as in training a network.
[[nodiscard]] const std::vector<Function>& functions();

}  // namespace hfta::bench
