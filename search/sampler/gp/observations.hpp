#pragma once
/// The history of a study as observations for a Gaussian process. Internal to the gp sampler.

#include <cstddef>
#include <vector>

#include "search/history.hpp"
#include "search/sampler/inputs.hpp"

namespace hfta::search::gp {

struct Observations {
  Matrix x;        ///< Configurations of trials that ended with a value, a row for each.
  Vector y;        ///< Their values, of mean 0 and variance 1 (0 where all are equal); smaller is better.
  Matrix tried;    ///< Configurations of trials that ended, failed ones too, a row for each.
  Vector sign;     ///< For each row of `tried`: -1 where the trial failed, 1 where it did not.
  Matrix running;  ///< Configurations of trials that have not ended, a row for each.
};

/// Trials that lack parameters are left out. Values far worse than usual (than the median of the first ten, by more
/// than three times what the best is better) count as if they were that bad, since how bad a bad trial is says little
/// about good ones. Of more than `most` trials with a value there remain the best half of that number and, of the rest,
/// every so many by order of draw: the model has to be right where values are good, and to know where they are not.
[[nodiscard]] Observations observe(const Inputs& inputs, const trials::Space& space, const History& history,
                                   trials::Goal goal, std::size_t most);

/// Values, of which smaller ones are better, to mean 0 and variance 1; 0 where all are equal. Those that are worse than
/// usual by more than three times what the best is better count as if they were that bad. What is usual: the median of
/// all, or of the first `early`, whichever is worse. REQUIRES 0 < early <= values.size().
[[nodiscard]] Vector standardized(std::vector<double> values, std::size_t early);

}  // namespace hfta::search::gp
