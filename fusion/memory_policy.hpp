#pragma once
/// What becomes of the values that a training step's forward computes and its backward reads.

#include <array>
#include <utility>

namespace hfta::fusion {

enum class MemoryPolicy {
  kAuto,       ///< They are kept where that fits; else whatever trains fastest of what fits.
  kKeep,       ///< They are kept.
  kRecompute,  ///< Some are computed again in the backward, to the same bits (fusion/cpu/recompute.hpp).
  kCompress,   ///< Some lie encoded until then, within bounds (fusion/cpu/encode.hpp): Recipe::compression.
};

/// The policies by their names in configs.
inline constexpr std::array<std::pair<const char*, MemoryPolicy>, 4> kMemoryPolicies = {
    {{"auto", MemoryPolicy::kAuto},
     {"keep", MemoryPolicy::kKeep},
     {"recompute", MemoryPolicy::kRecompute},
     {"compress", MemoryPolicy::kCompress}}};

[[nodiscard]] constexpr const char* name_of(MemoryPolicy policy) {
  return kMemoryPolicies.at(static_cast<std::size_t>(policy)).first;
}

}  // namespace hfta::fusion
