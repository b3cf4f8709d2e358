#pragma once
/// What `hfta-tune plan` says of memory.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/cli/plan_report.hpp"

namespace hfta::engine {

/// "12.5", "-" for none: as cells of tables have it.
[[nodiscard]] std::string mebibytes(double bytes);

/// Of whom a table speaks: the partition's name, or "every trial".
[[nodiscard]] std::string of_partition(const Partition& partition);

/// The ways to keep to the limit, of each partition, and what becomes of it in words; "" where the config says nothing
/// of memory and all fits.
[[nodiscard]] std::string memory_table(const StudyConfig& config, const Plan& plan);

/// {"limit", "plenty", "ways": [{"lowering", "bytes_per_slot", "bytes_per_arena", "shared_bytes", "arenas", "width",
/// "open"}]}; null where nothing is known.
[[nodiscard]] nlohmann::ordered_json memory_json(const PartitionPlan& plan);

}  // namespace hfta::engine
