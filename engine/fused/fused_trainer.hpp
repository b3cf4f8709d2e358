#pragma once
/// The real Trainer: trials of a study on fused arrays of one device.

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/fused/choice_cache.hpp"
#include "engine/fused/model_files.hpp"
#include "engine/module.hpp"
#include "fusion/epochs.hpp"

namespace hfta::engine {

/// A trial's task with its graph.
struct PreparedTask {
  TaskSpec spec;  ///< hyper.graph filled in; drop_last where the graph's batch is fixed
  fusion::Graph graph;
  std::vector<fusion::DType> input_types;  ///< Of an exported model's inputs.
};

/// Data of one source, and, once a task of theirs was opened, on the device.
struct LoadedData {
  fusion::Splits host;
  std::optional<fusion::DeviceData> train, validation, test;
};

class FusedTrainer final : public Trainer {
 public:
  FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock);

  void check(const trials::Params& params) override;
  [[nodiscard]] std::string partition(const trials::Params& params) const override;
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<ModelFacts> models() const override { return models_.all(); }
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width,
                                                   double expected_epochs) override;

  /// The task of a trial; throws Error{kConfig} if model and data do not fit each other.
  [[nodiscard]] PreparedTask prepare(const trials::Params& params);
  [[nodiscard]] const StudyConfig& config() const { return options_.config; }

 private:
  /// That an array can be made of it; and a note of the samples that a fixed batch leaves out.
  void check_model(const PreparedTask& task, std::int64_t samples);
  [[nodiscard]] LoadedData& load(const TaskSpec& spec, const std::vector<fusion::DType>& inputs);
  [[nodiscard]] const LoadedData& on_device(const PreparedTask& task);
  [[nodiscard]] const fusion::MeasuredChoices& choices_for(const PreparedTask& task, double expected_epochs);
  [[nodiscard]] int planned_width(const PreparedTask& task) const;
  [[nodiscard]] int threads() const;

  TrainerOptions options_;
  Files& files_;
  const Clock& clock_;
  ChoiceCache cache_;
  ModelFiles models_;
  std::set<std::string> runnable_;                          ///< Signatures of graphs that an array was made of.
  std::map<std::string, LoadedData> data_;                  ///< By source, dtypes and kind of target.
  std::map<std::string, fusion::MeasuredChoices> choices_;  ///< By graph signature, dtype and batch size.
};

}  // namespace hfta::engine
