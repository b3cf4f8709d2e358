#pragma once
/// Samplers for spaces whose parameters depend on each other: by conditions, and by constraints.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "search/constraints.hpp"
#include "search/sampler.hpp"

namespace hfta::search {

/// What handles conditions: one sampler for each group of parameters, or the sampler itself.
enum class Conditions { kByGroups, kBySampler };

/// Makes the sampler of a method, for a space without conditions unless the sampler handles them.
using SamplerFactory =
    std::function<std::unique_ptr<Sampler>(const trials::Space& space, std::uint64_t seed, Repeats repeats)>;

/// A sampler of `space` by those that `make` makes.
///
/// Conditions: parameters with equal conditions are a group, and each group has a sampler of its own, which sees the
/// trials that have all of the group's parameters, with these alone (as Optuna's TPESampler(group=True)), and may
/// repeat their values. A sampler with an end (grid) is one sampler of all parameters instead: of the combinations that
/// differ only in what does not apply, the first stays.
///
/// Constraints: what breaks one is drawn again, of a sampler that learns up to 32 times by the method and then up to
/// 1'000'000 times at random; any other sampler goes on to its next draw, at most 1'000'000 in a row, or to its end.
/// Throws Error{kConfig} naming the constraints if none is met by then.
///
/// A finite space with conditions or constraints is not repeated as long as another configuration is found; with
/// Conditions::kBySampler the sampler itself ensures that.
[[nodiscard]] std::unique_ptr<Sampler> make_restricted(trials::Space space, std::uint64_t seed,
                                                       std::vector<Constraint> constraints, SamplerFactory make,
                                                       Conditions conditions = Conditions::kByGroups);

/// Number of configurations of a finite space, where a grid would try these and no others. nullopt: the space is not
/// finite, has more than 2^53 combinations, has conditions or constraints and more than 2^16 combinations, or has
/// values of probability 0, which a grid tries. Throws Error{kConfig} for constraints that none of them meets.
[[nodiscard]] std::optional<std::int64_t> grid_size(const trials::Space& space,
                                                    const std::vector<Constraint>& constraints);

}  // namespace hfta::search
