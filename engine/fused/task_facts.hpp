#pragma once
/// What is found out about tasks and their graphs, each fact once for all trials that share it.

#include <map>
#include <span>
#include <string>

#include "engine/fused/frozen_layers.hpp"
#include "engine/fused/prepared_task.hpp"
#include "engine/fused/study_data.hpp"
#include "engine/fused/trainer_setup.hpp"
#include "fusion/epochs.hpp"
#include "fusion/runnable.hpp"

namespace hfta::engine {

/// Used by one thread at a time. Its functions throw Error{kConfig} where fusion/ refuses a model, and as StudyData
/// does where they need the data.
class TaskFacts {
 public:
  /// All of these must outlive this.
  TaskFacts(const TrainerSetup& setup, FrozenLayers& frozen, StudyData& data)
      : setup_(setup), frozen_(frozen), data_(data) {}

  /// FrozenLayers::trained_graph()
  [[nodiscard]] const fusion::Graph& trained_graph(const PreparedTask& task) { return frozen_.trained_graph(task); }
  /// ChoiceKey::graph of the task.
  [[nodiscard]] std::string key_of(const PreparedTask& task);
  [[nodiscard]] fusion::EpochOptions epoch_options(const PreparedTask& task);
  /// Runs the graph of a model file, unless one like it was run before. Throws as fusion::check_runnable.
  void try_out(const PreparedTask& task);
  /// Runnable::mixes_samples of a graph that was tried out.
  [[nodiscard]] bool mixes_samples(const PreparedTask& task) const;
  /// Why the batches of its training cannot be divided by these parts; "" if they can.
  [[nodiscard]] std::string why_not_divided(const PreparedTask& task, std::span<const int> parts);
  /// Why these ranks cannot be stages that train it; "" if they can.
  [[nodiscard]] const std::string& why_not_staged(const PreparedTask& task);

 private:
  /// Whether the graph of a model file is not fusion::evaluates_samples_apart().
  [[nodiscard]] bool may_mix_samples(const PreparedTask& task);

  const TrainerSetup& setup_;
  FrozenLayers& frozen_;
  StudyData& data_;
  std::map<std::string, fusion::Runnable> runnable_;  ///< By the signature of graphs that are known to run.
  std::map<std::string, bool> evaluated_apart_;       ///< By a graph's signature: evaluates_samples_apart().
  std::map<std::string, std::string> not_staged_;     ///< By key_of(): why_not_staged().
};

}  // namespace hfta::engine
