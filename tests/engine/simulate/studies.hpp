#pragma once
/// Studies to simulate, and what they come to as text.

#include <filesystem>
#include <string>

#include "engine/config.hpp"

namespace hfta::engine::testing {

/// A folder in memory where that is possible, removed with everything in it.
class SimulationFolder {
 public:
  SimulationFolder();
  ~SimulationFolder();
  SimulationFolder(const SimulationFolder&) = delete;
  SimulationFolder& operator=(const SimulationFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The digits' MLP over four parameters, of which `hidden` splits the trials into three partitions; `lines` say how
/// they are searched: method, run_cap, seed, width.
[[nodiscard]] StudyConfig digits_study(const std::string& lines, const std::filesystem::path& storage);

/// Every trial with its state, value, reason, parameters and metrics of each epoch.
[[nodiscard]] std::string table_of(const StudyConfig& config);

/// The first lines that differ; empty if none do.
[[nodiscard]] std::string first_difference(const std::string& found, const std::string& wanted);

}  // namespace hfta::engine::testing
