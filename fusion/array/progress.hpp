#pragma once
/// A slot's counters as a saved slot's metadata.

#include <map>
#include <string>

#include "fusion/array.hpp"

namespace hfta::fusion {

/// The place in an epoch is left out between epochs.
[[nodiscard]] std::map<std::string, std::string> counters_of(const SlotProgress& progress);
/// The exact inverse of counters_of(). Throws Error{kStorage}.
[[nodiscard]] SlotProgress progress_from(const std::map<std::string, std::string>& counters);

}  // namespace hfta::fusion
