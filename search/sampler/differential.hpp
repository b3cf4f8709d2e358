#pragma once
/// Differential evolution (Storn and Price 1997) on the unit cube, as DEHB has it: rand/1 mutation, binomial crossover.
/// Internal to search/sampler.

#include <vector>

#include "base/random.hpp"

namespace hfta::search {

/// One number from 0 to 1 for each parameter.
using Genome = std::vector<double>;

/// a + factor * (b - c); what leaves 0..1 is drawn anew, uniformly.
[[nodiscard]] Genome mutated(const Genome& a, const Genome& b, const Genome& c, double factor, CountedRandom& random);

/// Binomial crossover: each number is the mutant's with that probability, else the target's. One number, which is drawn
/// first, is always the mutant's.
[[nodiscard]] Genome crossed(const Genome& target, const Genome& mutant, double probability, CountedRandom& random);

}  // namespace hfta::search
