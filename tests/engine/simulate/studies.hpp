#pragma once
/// Studies to simulate, and what they come to as text.

#include <string>

#include "engine/config.hpp"
#include "storage/store.hpp"

namespace hfta::engine::testing {

/// The digits' MLP over four parameters, of which `hidden` splits the trials into three partitions; `lines` say how
/// they are searched: method, run_cap, seed, width; and `metric`, if not val_loss. `parameters`: lines of more of them.
[[nodiscard]] StudyConfig digits_study(const std::string& lines, const std::string& parameters = "");

/// Every trial with its state, values, reason, parameters and metrics of each epoch.
[[nodiscard]] std::string table_of(storage::Store& store, const StudyConfig& config);

/// The first lines that differ; empty if none do.
[[nodiscard]] std::string first_difference(const std::string& found, const std::string& wanted);

}  // namespace hfta::engine::testing
