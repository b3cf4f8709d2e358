#include "engine/cli/plan_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "engine/report/columns.hpp"

namespace hfta::engine {
namespace {

std::string milliseconds_of(const Partition& p, const std::string& lowering) {
  const auto found = std::find_if(p.ways.begin(), p.ways.end(), [&](const MeasuredWay& way) {
    return way.lowering == lowering && way.why_not.empty();
  });
  return found == p.ways.end() ? "-" : fmt::format("{:.4f}", 1000 * found->slot_step_seconds);
}

// The effect of the limit, in words.
std::string memory_verdict(const Partition& p) {
  const MemoryPlan& budget = *p.plan.budget;
  const auto most = std::max_element(budget.ways.begin(), budget.ways.end(),
                                     [](const MemoryWay& a, const MemoryWay& b) { return a.width < b.width; });
  if (budget.plenty)
    return fmt::format("{}: it fits, and less memory would gain nothing", budget.ways.front().lowering);
  if (most->width == 0) return "not even one trial fits, whichever way";
  return fmt::format("{}: {} at most; arrays run by the fastest of the ways marked, which is measured",
                     budget.ways.front().lowering, budget.ways.front().width);
}

}  // namespace

std::string mebibytes(double bytes) {
  if (bytes <= 0) return "-";
  return bytes < 1e9 ? fmt::format("{:.1f}", bytes / (1 << 20)) : fmt::format("{:.0f}", bytes / (1 << 20));
}

std::string of_partition(const Partition& p) { return p.name.empty() ? "every trial" : printable(p.name); }

std::string memory_table(const StudyConfig& config, const Plan& plan) {
  std::string out;
  for (const Partition& p : plan.partitions) {
    if (!p.plan.budget || (p.plan.budget->plenty && !config.memory.given)) continue;
    std::vector<std::vector<std::string>> rows;
    for (const MemoryWay& way : p.plan.budget->ways) {
      const int width = std::max(1, std::min(way.width, p.plan.width));
      rows.push_back({way.lowering, mebibytes(static_cast<double>(way.need.slot)),
                      mebibytes(static_cast<double>(way.need.activations)), std::to_string(way.working),
                      std::to_string(way.width),
                      mebibytes(static_cast<double>(way.need.total(width, std::min(width, way.working)))),
                      milliseconds_of(p, way.lowering), way.open ? "*" : ""});
    }
    out += fmt::format("\n{}, memory within {} (policy {}):\n", of_partition(p), bytes_text(p.plan.budget->limit),
                       name_of(config.memory.policy));
    out += in_columns({"way to run", "MiB/slot", "MiB/arena", "arenas", "fit", "MiB", "ms/trial", ""}, rows);
    out += memory_verdict(p) + "\n";
  }
  return out;
}

nlohmann::ordered_json memory_json(const PartitionPlan& plan) {
  using nlohmann::ordered_json;
  const std::optional<MemoryPlan>& budget = plan.budget;
  if (!budget) return nullptr;
  ordered_json ways = ordered_json::array();
  for (const MemoryWay& way : budget->ways) {
    ways.push_back({{"lowering", way.lowering},
                    {"bytes_per_slot", way.need.slot},
                    {"bytes_per_arena", way.need.activations},
                    {"shared_bytes", way.need.shared},
                    {"arenas", way.working},
                    {"width", way.width},
                    {"open", way.open}});
  }
  return {{"limit", budget->limit}, {"plenty", budget->plenty}, {"ways", std::move(ways)}};
}

}  // namespace hfta::engine
