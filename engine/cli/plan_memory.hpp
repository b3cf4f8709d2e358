#pragma once
/// The part of `hfta-tune plan` that is about memory.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/cli/plan_report.hpp"

namespace hfta::engine {

/// A cell of a table: "12.5", or "-" for none.
[[nodiscard]] std::string mebibytes(double bytes);

/// The trials that a table is about: the partition's name, or "every trial".
[[nodiscard]] std::string of_partition(const Partition& partition);

/// The ways to keep to the limit, of each partition, and what becomes of it in words; "" where the config says nothing
/// of memory and all fits.
[[nodiscard]] std::string memory_table(const StudyConfig& config, const Plan& plan);

/// {"limit", "plenty", "ways": [{"lowering", "bytes_per_slot", "bytes_per_arena", "shared_bytes", "arenas", "width",
/// "open"}]}; null where nothing is known.
[[nodiscard]] nlohmann::ordered_json memory_json(const PartitionPlan& plan);

}  // namespace hfta::engine
