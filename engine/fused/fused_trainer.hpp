#pragma once
/// The real Trainer: trials of a study on fused arrays of one device.

#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/fused/budget.hpp"
#include "engine/fused/choice_cache.hpp"
#include "engine/fused/feature_cache.hpp"
#include "engine/fused/lent_ways.hpp"
#include "engine/fused/model_files.hpp"
#include "engine/module.hpp"
#include "engine/rank_trainer.hpp"
#include "fusion/epochs.hpp"
#include "fusion/frozen_prefix.hpp"
#include "fusion/gpu.hpp"
#include "fusion/runnable.hpp"
#include "fusion/ways.hpp"

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
  std::optional<TaskData> device;
};

class FusedTrainer : public RankTrainer {
 public:
  FusedTrainer(const TrainerOptions& options, Files& files, const Clock& clock);

  void check(const trials::Params& params) override;
  [[nodiscard]] DeviceFacts device_facts() const override;
  [[nodiscard]] PartitionPlan plan(const trials::Params& params) override;
  [[nodiscard]] std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) override;
  [[nodiscard]] std::vector<ModelFacts> models() const override { return models_.all(); }
  [[nodiscard]] std::vector<DataFacts> data() const override { return data_facts_; }
  [[nodiscard]] std::string recall(const std::string& partition, const std::string& choices_json) override;
  [[nodiscard]] std::optional<double> step_seconds(const std::string& partition, int slots) const override;
  [[nodiscard]] std::unique_ptr<TrainerArray> open(const trials::Params& params, int width, double expected_epochs,
                                                   const Pause& pause) override;

  // As a rank (rank_times.cpp).
  [[nodiscard]] std::string choose(const trials::Params& params, double expected_epochs, const Pause& pause) override;
  [[nodiscard]] int planned_width(const trials::Params& params) override;
  [[nodiscard]] std::string why_not_divided(const trials::Params& params, std::span<const int> parts) override;
  [[nodiscard]] std::optional<RankPlans> division(const trials::Params& params) override;
  [[nodiscard]] bool kept_batches_whole(const trials::Params& params) override;
  [[nodiscard]] RankTimes rank_times(const trials::Params& params, int width, bool batches) override;
  [[nodiscard]] double exchange_seconds(const trials::Params& params, int width) override;
  [[nodiscard]] double tried_seconds(const trials::Params& params, int width, const Division& division,
                                     int steps) override;
  [[nodiscard]] double window(const trials::Params& params) override;
  void divide(const trials::Params& params, const RankPlans& plans, const Pause& pause) override;

  /// The task of a trial; throws Error{kConfig} if model and data do not fit each other.
  [[nodiscard]] PreparedTask prepare(const trials::Params& params);
  /// What arrays of the task will need by that lowering.
  [[nodiscard]] MemoryNeed memory_need(const PreparedTask& task, const fusion::Lowering& lowering);
  /// Of an array of the task that runs by that lowering; null: it trains with its own threads only.
  [[nodiscard]] std::unique_ptr<LentWays> lent_ways(const PreparedTask& task, const fusion::Lowering& own);
  /// What of the task's model is frozen and alike for all trials.
  [[nodiscard]] const fusion::FrozenPrefix& frozen(const PreparedTask& task);
  /// The graph that its arrays train: the model's, or the rest behind the frozen prefix.
  [[nodiscard]] const fusion::Graph& trained_graph(const PreparedTask& task);
  /// Of the features of all tasks.
  [[nodiscard]] fusion::FeatureCounts feature_counts() const { return features_.counts(); }
  [[nodiscard]] const TrainerOptions& options() const { return options_; }
  [[nodiscard]] const StudyConfig& config() const { return options_.config; }
  [[nodiscard]] c10::Device device() const { return c10::Device(options_.device); }
  [[nodiscard]] fusion::EpochOptions epoch_options(const PreparedTask& task);
  /// The task's data on device(), as trained_graph() takes them. They stay as long as the trainer.
  [[nodiscard]] const TaskData& trained_data(const PreparedTask& task);
  /// For arrays on device(); null where steps are not captured.
  [[nodiscard]] const std::shared_ptr<fusion::StepGraphBackend>& graphs() const { return cuda_graphs_.backend; }

 private:
  /// That the graph says what validation and test compute.
  void check_evaluation(const PreparedTask& task) const;
  /// That ranks can share its arrays as array.divide has it.
  void check_divided(const PreparedTask& task);
  [[nodiscard]] std::string why_not_divided(const PreparedTask& task, std::span<const int> parts);
  /// Why these ranks cannot be stages that train it; "" if they can.
  [[nodiscard]] const std::string& why_not_staged(const PreparedTask& task);
  /// That its ops can run; and a note of the samples that a fixed batch leaves out.
  void check_model(const PreparedTask& task, const fusion::Splits& splits);
  /// Runs the graph of a model file, unless one like it was run before.
  void try_out(const PreparedTask& task);
  /// Runnable::mixes_samples of a graph that was tried out.
  [[nodiscard]] bool mixes_samples(const PreparedTask& task) const;
  /// Whether the graph of a model file is not fusion::evaluates_samples_apart().
  [[nodiscard]] bool may_mix_samples(const PreparedTask& task);
  [[nodiscard]] LoadedData& load(const TaskSpec& spec, const std::vector<fusion::DType>& inputs);
  /// The task's data as the model takes them, moved there if they are not there yet.
  [[nodiscard]] const TaskData& on_device(const PreparedTask& task);
  [[nodiscard]] KeptChoices& choices_for(const PreparedTask& task, const std::string& partition, double expected_epochs,
                                         const Pause& pause);
  /// The width for which arrays of that width choose their way: on a CPU one way serves all widths.
  [[nodiscard]] int decided_width(const KeptChoices& kept, int width) const;
  /// Ranks of which it is one; 1: it trains alone.
  [[nodiscard]] int ranks() const;
  /// Of the pipeline that these ranks are; 1: they are none.
  [[nodiscard]] int stages() const;
  /// Whether these ranks may go on with that division under array.divide.
  [[nodiscard]] bool may_go_on(const Division& division) const;
  /// How a study that ran so divided its batches, in words, if results change a little for that now; "" if not.
  [[nodiscard]] std::string difference_in_batches(const KeptChoices& before) const;
  /// The same for how a model was cut into stages.
  [[nodiscard]] std::string difference_in_stages(const KeptChoices& before) const;
  /// `alike`: fusion::MeasureOptions::alike.
  [[nodiscard]] KeptChoices measured(const PreparedTask& task, const ChoiceKey& key, double expected_epochs,
                                     const fusion::MeasuredChoices* alike, const Pause& pause);
  /// What choices of today depend on, for that task and width.
  [[nodiscard]] ChoiceKey key_of(std::string graph, int width) const;
  /// What of a task choices depend on.
  [[nodiscard]] std::string graph_key(const PreparedTask& task);

  // ---- Memory (trainer_memory.cpp) ----

  /// Bytes that its arrays may hold.
  [[nodiscard]] std::int64_t room() const;
  /// ChoiceKey::memory.
  [[nodiscard]] std::string memory_text() const;
  /// Slots that keep all threads busy that train an array, those of the other stages, too.
  [[nodiscard]] int busy_slots() const { return threads() * stages(); }
  /// The most slots that an array should have, if they fit; those it will have.
  [[nodiscard]] int wanted_width() const;
  [[nodiscard]] int planned_width(const PreparedTask& task);
  [[nodiscard]] fusion::WayQuestion question(const PreparedTask& task, int width);
  /// WayQuestion::evaluation_batch.
  [[nodiscard]] std::int64_t evaluated_at_a_time(const PreparedTask& task);
  /// Bytes of the device that the task's data take.
  [[nodiscard]] std::int64_t data_bytes(const PreparedTask& task);
  /// All ways to run arrays of that width under the policy, and what they need. Throws Error{kConfig} if there are
  /// none.
  [[nodiscard]] const std::vector<WayNeed>& ways(const PreparedTask& task, int width);
  [[nodiscard]] std::vector<WayNeed> needs_of(const PreparedTask& task, const fusion::WayQuestion& question,
                                              std::span<const fusion::Lowering> ways);
  /// Those of them that fit.
  [[nodiscard]] Budgeted budgeted(const PreparedTask& task);
  /// That one slot fits into memory.limit, and array.width does.
  void check_budget(const PreparedTask& task, const Budgeted& found);
  /// The largest batch, of the task's halved again and again, with which one slot fits; 0: none.
  [[nodiscard]] int batch_that_fits(const PreparedTask& task);

  [[nodiscard]] std::optional<FeaturePlan> feature_plan(const PreparedTask& task);
  /// Whether this trainer's arrays can run by them all.
  [[nodiscard]] bool are_runnable(const KeptChoices& kept) const;
  [[nodiscard]] int threads() const;

  TrainerOptions options_;
  int cores_;  ///< usable_cores(), which reads files.
  fusion::CudaGraphs cuda_graphs_;
  Files& files_;
  const Clock& clock_;
  ChoiceCache cache_;
  ModelFiles models_;
  FeatureCache features_;
  std::map<std::string, fusion::FrozenPrefix> frozen_;  ///< By the model's signature and weights.
  std::map<std::string, fusion::Runnable> runnable_;    ///< By the signature of graphs that are known to run.
  std::map<std::string, bool> evaluated_apart_;         ///< By a graph's signature: evaluates_samples_apart().
  std::map<std::string, LoadedData> data_;              ///< By source, dtypes and kind of target.
  std::vector<DataFacts> data_facts_;
  std::map<std::string, KeptChoices> choices_;        ///< By ChoiceKey::graph.
  std::map<std::string, const KeptChoices*> alike_;   ///< By a graph's ops: in choices_, those of the first such one.
  std::map<std::string, KeptChoices> recalled_;       ///< By partition.
  std::set<std::string> whole_batches_;               ///< Of these, those that have trained on whole batches.
  std::map<std::string, std::string> graphs_;         ///< Partition -> ChoiceKey::graph, of those checked or opened.
  std::map<std::string, std::vector<WayNeed>> ways_;  ///< By graph, width and data.
  std::map<std::string, std::string> not_staged_;     ///< By graph: why_not_staged().
};

}  // namespace hfta::engine
