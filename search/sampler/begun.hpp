#pragma once
/// Samplers that begin with what is known: with points that a config gives, and with the trials of an earlier study.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "search/constraints.hpp"
#include "search/sampler.hpp"

namespace hfta::search {

/// The first draws are `points`, each completed to a configuration (search::complete()); then those of `inner`, whose
/// draws are counted from 0. REQUIRES that each point can be completed without a problem.
[[nodiscard]] std::unique_ptr<Sampler> make_pointed(const trials::Space& space, std::uint64_t seed,
                                                    const std::vector<Constraint>& constraints,
                                                    std::vector<trials::Params> points, std::unique_ptr<Sampler> inner);

/// A point as a draw: its values, and a draw of what it lacks. `index`: its place among the points.
[[nodiscard]] trials::Params completed_point(const trials::Space& space, const trials::Params& point,
                                             std::uint64_t seed, int index, const std::vector<Constraint>& constraints,
                                             std::string& problem);

/// Every draw sees `prior` before the study's own trials.
[[nodiscard]] std::unique_ptr<Sampler> make_warm(History prior, std::unique_ptr<Sampler> inner);

}  // namespace hfta::search
