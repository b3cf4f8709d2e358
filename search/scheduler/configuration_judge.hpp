#pragma once
/// Judges of configurations whose trials are repetitions. Internal to search/scheduler.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "search/scheduler.hpp"
#include "trials/repetition.hpp"

namespace hfta::search {

/// Judges configurations. Not thread-safe. Configurations count from 0, in the order of their draws.
class ConfigurationJudge {
 public:
  virtual ~ConfigurationJudge() = default;
  virtual void enter(int configuration, const trials::Params& params) = 0;
  [[nodiscard]] virtual std::optional<int> capacity() const = 0;  ///< Number of configurations.
  [[nodiscard]] virtual int target(int configuration) const = 0;
  [[nodiscard]] virtual int max_epochs() const = 0;
  [[nodiscard]] virtual std::int64_t planned_epochs(int first, int configurations) const = 0;
  /// Called once for each epoch of a configuration, in order, until the result is kStop. `values`: those of its
  /// repetitions, in their order; NaN: failed.
  [[nodiscard]] virtual Decision judge(int configuration, int epoch, const std::vector<double>& values) = 0;
  /// Verdicts on configurations that judge() told to pause.
  [[nodiscard]] virtual std::vector<Verdict> take_verdicts() = 0;
};

/// The scheduler of the trials whose configurations `judge` judges; see make_repeated().
[[nodiscard]] std::unique_ptr<Scheduler> judged_by(std::unique_ptr<ConfigurationJudge> judge,
                                                   const trials::Repetitions& repetitions);

}  // namespace hfta::search
