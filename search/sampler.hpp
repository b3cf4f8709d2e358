#pragma once
/// Samplers decide which configurations to try.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::search {

/// Not thread-safe; owned by the driver.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Parameters of draws first..first+k-1 (0-based count of everything that a sampler ever drew in the study; what was
  /// enqueued does not count), fewer when the space is exhausted. `history` holds every earlier trial with what is
  /// known of it. Deterministic in its arguments.
  [[nodiscard]] virtual std::vector<trials::Params> ask(int first, int k,
                                                        const std::vector<trials::Trial>& history) = 0;
  /// How many configurations there are at all; nullopt if unlimited.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// Every combination once, the last parameter fastest; probabilities play no part. Throws Error{kConfig} if a parameter
/// has no finite list (search::enumerate), or for 2^63 combinations.
[[nodiscard]] std::unique_ptr<Sampler> make_grid(trials::Space space);

/// Random draws, a function of (seed, draw) alone, independent where the space is infinite. Where it is finite, a
/// configuration is not repeated until all were tried (a repeated one wastes its budget): sampling without replacement,
/// likelier ones sooner. Spaces of up to 2^20 configurations are shuffled, pass after pass; for larger finite ones
/// every draw is kept in memory. size() is nullopt: a further pass can always follow.
[[nodiscard]] std::unique_ptr<Sampler> make_random(trials::Space space, std::uint64_t seed);

}  // namespace hfta::search
