#pragma once
/// The search for a plan.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/planner/plan.hpp"

namespace hfta::engine::planner {

inline constexpr int kMostSimulations = 10'000'000;

struct Effort {
  std::uint64_t seed = 0;
  int simulations = 3000;  ///< Plans to simulate. The search begins with those that everybody would try.
};

struct Candidate {
  std::string name;  ///< "CP-AR", or a device's.
  Choices choices;
  Outcome outcome;
};

struct Found {
  Choices choices;
  Outcome outcome;                   ///< No worse, by better(), than any of `baselines`.
  std::vector<Candidate> baselines;  ///< One action for all groups; by action.
  int simulations = 0;               ///< Number of simulations made.
};

/// Local search from the baselines and from layouts that cut the graph into one stretch per device, by time and by
/// memory: single groups first, then pairs and stretches of groups, drawn by the seed. Deterministic.
[[nodiscard]] Found search(const Problem& problem, const Effort& effort);

}  // namespace hfta::engine::planner
