#pragma once
/// The output of `hfta-tune plan`, as a table or as JSON.

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
  PartitionPlan plan;            ///< Plan of the first device.
  std::vector<int> widths = {};  ///< Width by device, in Plan::devices' order.
  std::vector<MeasuredWay> ways = {};
};

/// The trials, devices and arrays of a study that would run.
struct Plan {
  std::optional<int> trials;
  int drawn = 0;
  std::optional<std::int64_t> epochs;
  int max_epochs = 0;
  std::vector<std::string> devices;
  std::vector<Partition> partitions;
};

/// Model files that the partitions train and evaluate, each once.
[[nodiscard]] std::vector<const ModelFacts*> models_of(const Plan& plan);

[[nodiscard]] std::string plan_table(const StudyConfig& config, const Plan& plan);
[[nodiscard]] std::string plan_json(const StudyConfig& config, const Plan& plan);

}  // namespace hfta::engine
