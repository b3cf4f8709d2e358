#pragma once
/// A sampler of a space with conditions, made of one sampler for each group of parameters that apply together. Internal
/// to search/sampler.

#include <cstdint>
#include <memory>

#include "search/sampler/restricted.hpp"

namespace hfta::search {

/// See make_restricted(). REQUIRES that the samplers learn: one that does not can draw all parameters at once.
[[nodiscard]] std::unique_ptr<Sampler> make_grouped(const trials::Space& space, std::uint64_t seed,
                                                    const SamplerFactory& make);

/// The space as if all its parameters always applied.
[[nodiscard]] trials::Space without_conditions(trials::Space space);

/// A seed for each group; that of group 0 is the study's own.
[[nodiscard]] std::uint64_t seed_of_group(std::uint64_t seed, std::size_t group);

}  // namespace hfta::search
