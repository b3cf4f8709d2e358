#pragma once
/// The features that a study keeps (fusion/features.hpp): one set for each set of samples and frozen prefix, shared by
/// all arrays and partitions that have both in common, in one budget of memory.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "fusion/epochs.hpp"
#include "fusion/features.hpp"

namespace hfta::engine {

/// The sets of a task on the device, as its arrays take them.
struct TaskData {
  fusion::DeviceData train;
  std::optional<fusion::DeviceData> validation, test;
};

class FeatureCache {
 public:
  /// `budget`: bytes of features that are kept at most; `threads` compute them.
  FeatureCache(std::int64_t budget, int threads) : budget_(budget), left_(budget), threads_(threads) {}

  /// The sets as SplitModel::rest takes them. `whole`: as the model takes them; it must outlive this, and its address
  /// names it. The result lasts as long as this.
  [[nodiscard]] const TaskData& rest_of(const TaskData& whole, const std::shared_ptr<const fusion::SplitModel>& split);
  [[nodiscard]] std::int64_t budget() const { return budget_; }

 private:
  using SetKey = std::tuple<const fusion::DeviceData*, std::string>;
  [[nodiscard]] fusion::DeviceData rest_of(const fusion::DeviceData& data,
                                           const std::shared_ptr<const fusion::SplitModel>& split);
  [[nodiscard]] std::shared_ptr<fusion::FeatureModel> model(const std::shared_ptr<const fusion::SplitModel>& split);

  std::int64_t budget_, left_;
  int threads_;
  std::map<std::string, std::shared_ptr<fusion::FeatureModel>> models_;  ///< By SplitModel::key.
  std::map<SetKey, std::shared_ptr<const fusion::FeatureSet>> sets_;
  std::map<std::tuple<const TaskData*, std::shared_ptr<const fusion::SplitModel>>, TaskData> tasks_;
};

}  // namespace hfta::engine
