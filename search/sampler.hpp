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
  /// Parameters of draws first..first+k-1 (0-based count of everything ever drawn in the study), fewer when the space is
  /// exhausted. `history` holds every earlier trial with what is known of it. Deterministic in its arguments.
  [[nodiscard]] virtual std::vector<trials::Params> ask(int first, int k,
                                                        const std::vector<trials::Trial>& history) = 0;
  /// How many configurations there are at all; nullopt if unlimited.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const { return std::nullopt; }
};

/// Every combination once, the last parameter fastest. Throws Error{kConfig} if a parameter has no finite list.
[[nodiscard]] std::unique_ptr<Sampler> make_grid(trials::Space space);

/// Independent draws, a function of (seed, draw) alone. Where the space is finite, a configuration is not repeated
/// until all were tried (a repeated one wastes its budget).
[[nodiscard]] std::unique_ptr<Sampler> make_random(trials::Space space, std::uint64_t seed);

}  // namespace hfta::search
