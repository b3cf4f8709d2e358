#pragma once
/// The data of a study, each set loaded once, and the features of frozen layers that stand for it.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/fused/feature_cache.hpp"
#include "engine/fused/frozen_layers.hpp"
#include "engine/fused/prepared_task.hpp"
#include "engine/fused/trainer_setup.hpp"
#include "engine/trainer.hpp"
#include "fusion/dataset.hpp"

namespace hfta::engine {

/// All that it returns by reference lasts as long as this. Used by one thread at a time.
class StudyData {
 public:
  /// `setup` and `frozen` must outlive this.
  StudyData(const TrainerSetup& setup, FrozenLayers& frozen);

  /// The data of a source on the host, loaded when they are first asked for; `inputs`: PreparedTask::input_types.
  /// Throws as fusion::load_data, and Error{kConfig} if a file has other numbers than when it was read first.
  [[nodiscard]] const fusion::Splits& splits(const TaskSpec& spec, const std::vector<fusion::DType>& inputs);
  [[nodiscard]] const fusion::Splits& splits(const PreparedTask& task) { return splits(task.spec, task.input_types); }
  /// The task's data on the device, as FrozenLayers::trained_graph() takes them; moved there if they are not there yet.
  [[nodiscard]] const TaskData& trained(const PreparedTask& task);
  /// PartitionPlan::features.
  [[nodiscard]] std::optional<FeaturePlan> feature_plan(const PreparedTask& task);
  /// Facts of all data that were loaded, in that order.
  [[nodiscard]] const std::vector<DataFacts>& facts() const { return facts_; }

 private:
  /// The data of one source; on the device, too, once an array was opened that uses them.
  struct LoadedData {
    fusion::Splits host;
    std::optional<TaskData> device;
  };
  [[nodiscard]] LoadedData& load(const TaskSpec& spec, const std::vector<fusion::DType>& inputs);
  void check_unchanged(const DataFacts& now) const;
  /// The task's data as the model takes them, moved there if they are not there yet.
  [[nodiscard]] const TaskData& on_device(const PreparedTask& task);

  const TrainerSetup& setup_;
  FrozenLayers& frozen_;
  FeatureCache features_;
  std::map<std::string, LoadedData> data_;  ///< By source, dtypes and kind of target.
  std::vector<DataFacts> facts_;
};

}  // namespace hfta::engine
