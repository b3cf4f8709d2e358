#pragma once
/// What `hfta-tune plan` says, as a table or as JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"
#include "engine/trainer.hpp"

namespace hfta::engine {

/// Trials that can share an array.
struct Partition {
  std::string name;
  int trials = 0;
  trials::Params example;
  PartitionPlan plan;            ///< Of the first device.
  std::vector<int> widths = {};  ///< By device, in Plan::devices' order.
  std::vector<MeasuredWay> ways = {};
};

/// What would run.
struct Plan {
  std::optional<int> trials;
  int drawn = 0;
  std::optional<std::int64_t> epochs;
  int max_epochs = 0;
  std::vector<std::string> devices;
  std::vector<Partition> partitions;
};

[[nodiscard]] std::string plan_table(const StudyConfig& config, const Plan& plan);
[[nodiscard]] std::string plan_json(const StudyConfig& config, const Plan& plan);

}  // namespace hfta::engine
