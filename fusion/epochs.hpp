#pragma once
/// Epochs over an array: order of samples, learning rates, training, evaluation.

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusion/array.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// A dataset on a device: inputs and targets with N samples each.
struct DeviceData {
  std::vector<SampleArray> inputs = {};
  SampleArray target;  ///< None if the model takes its labels as inputs.
  std::int64_t size = 0;
};

/// Puts a dataset where batches are taken from: inputs in the dtype that the graph takes, targets that are not indices
/// in the recipe's. Numbers whose stored type is smaller keep that type until a batch is made from them. On a CPU, data
/// in a file stay there, and data in memory are shared if their type fits. A GPU gets a copy of the whole set, in the
/// stored types, except that unsigned integers of more than 8 bits are widened.
[[nodiscard]] DeviceData to_device(const Dataset& data, const Graph& graph, const Recipe& recipe,
                                   const at::Device& device);
/// Bytes of the device that to_device() takes: 0 on a CPU, where data are the host's already.
[[nodiscard]] std::int64_t device_bytes(const Dataset& data, const Graph& graph, const Recipe& recipe,
                                        const at::Device& device);

/// The result of one epoch of a slot.
struct EpochResult {
  int slot = 0;
  int epoch = 0;  ///< 1-based, of the trial.
  std::map<std::string, double> metrics =
      {};  ///< train_loss, val_*; with phases train_ and the name of each one's loss.
};

/// Called between training steps, perhaps by several threads at once; true ends the run early.
using Pause = std::function<bool()>;

struct EpochOptions {
  OrderOptions order = {};
  bool drop_last = false;  ///< Leaves out the epoch's last batch if it is short.
  std::uint64_t seed = 0;  ///< The study's seed.
  std::int64_t fixed_batch =
      0;  ///< Graph::fixed_batch: short batches are left out of training and filled up in evaluation.
  std::int64_t largest_batch = 0;  ///< Graph::largest_batch
  /// Graph::limits. The caller must choose training batches within them; in evaluation, batches that break them are
  /// padded.
  BatchLimits limits = {};
  bool may_mix_samples = false;  ///< Not evaluates_samples_apart(): evaluation may depend on the size of its batches.
};

/// Samples that are evaluated at a time: as many as are trained where the model or its loss may look at a batch as a
/// whole; else at least as many, more where samples are small. `elements`: number in
/// a sample of the first input. The rule knows nothing of the array, so that sums are the same at any width.
[[nodiscard]] std::int64_t evaluation_batch(const Recipe& recipe, const EpochOptions& options, std::int64_t elements);

/// Runs whole epochs. Each slot is at its own epoch: slots at the same epoch of the same data share their batches,
/// others gather their own. The data must outlive this object.
class Epochs {
 public:
  Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation);
  Epochs(const Recipe&, const EpochOptions&, const DeviceData&&, const DeviceData*) = delete;

  /// Further data that slots may be trained and validated on, as the folds of a cross-validation are; returns their
  /// number for SlotInit::data (those of the constructor have 0). Slots of one chunk on several sets are evaluated once
  /// on each of these sets. REQUIRES equally many training samples of equal shapes, and validation data where the
  /// others have some.
  int add(const DeviceData& train, const DeviceData* validation);

  /// Batches, each of which is an optimizer step unless gradients are accumulated.
  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// Optimizer steps of a slot with these numbers, in a phase of its steps.
  [[nodiscard]] std::int64_t updates_per_epoch(const SlotHyper& hyper, std::size_t phase = 0) const;
  /// Trains every occupied slot to the end of its epoch and evaluates it. train_loss is the mean over the epoch's
  /// batches, by their weights, of the loss before each step. In order of slot.
  [[nodiscard]] std::vector<EpochResult> run(Array& array) const;
  /// Runs an epoch as above, unless `pause` returns true: then returns nothing; each slot is within its epoch, as its
  /// SlotProgress says. The next call continues from there; slots may be at different steps. A pause changes no bit of
  /// the results. With Array::group every rank calls this; rank 0's `pause` decides for all, and rank 0 alone
  /// has metrics of evaluation. Evaluation itself is not interrupted. Throws Error{kStorage} for a slot beyond the end
  /// of its epoch. If training or `pause` throws, each slot is somewhere in its epoch as after a pause.
  [[nodiscard]] std::optional<std::vector<EpochResult>> run(Array& array, const Pause& pause) const;
  /// Metrics of one occupied slot over a whole set in evaluation mode, each name prefixed with `prefix`. In a pipeline
  /// every rank calls this, and those without Array::has_answers() get none.
  [[nodiscard]] std::map<std::string, double> evaluate(Array& array, int slot, const DeviceData& data,
                                                       const std::string& prefix) const;

 private:
  /// Training and validation data; the latter may be null.
  struct Set {
    const DeviceData* train;
    const DeviceData* validation;
  };
  /// Slots with equal keys take equal batches.
  struct OrderKey {
    int epoch = 0;
    std::uint64_t trial = 0;
    int data = 0;
    auto operator<=>(const OrderKey&) const = default;  // NOLINT(modernize-use-nullptr): that clang-tidy sees a 0 there
  };
  using Orders = std::map<OrderKey, at::Tensor>;                    ///< Indices on the device.
  using Prepared = std::map<OrderKey, Samples>;                     ///< Samples of one step.
  using ChunkMetrics = std::vector<std::map<std::string, double>>;  ///< By slot of the chunk.
  class Run;
  using Runs = std::vector<std::unique_ptr<Run>>;
  void check_slots(const Array& array) const;
  void train(Array& array, Runs& runs, const Orders& orders, const Pause& pause) const;
  void train_in_step(Array& array, Runs& runs, const Orders& orders, const Pause& asked) const;
  [[nodiscard]] std::vector<EpochResult> finish(Array& array, Runs& runs) const;
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> range_of(std::int64_t step) const;
  /// The share of a step's batch that this rank's array takes.
  [[nodiscard]] BatchShare share_of(const Array& array, std::int64_t step) const;
  [[nodiscard]] OrderKey order_key(const Array& array, int slot) const;
  [[nodiscard]] Orders orders_for(const Array& array) const;
  [[nodiscard]] Samples samples_in(const OrderKey& key, const at::Tensor& order) const;
  [[nodiscard]] const DeviceData& train() const { return *sets_.front().train; }
  [[nodiscard]] bool validates() const { return sets_.front().validation != nullptr; }
  [[nodiscard]] std::int64_t evaluation_batch() const;
  [[nodiscard]] std::int64_t filled_up(std::int64_t n) const;
  /// Samples as the graph takes them; without the padding, they are [begin, end) of the data.
  struct EvaluationBatch {
    Samples samples;
    std::int64_t begin, end;
  };
  [[nodiscard]] std::vector<EvaluationBatch> evaluation_batches(const DeviceData& data) const;
  [[nodiscard]] std::vector<ChunkMetrics> evaluate_chunks(Array& array, const DeviceData& data,
                                                          const std::function<bool(int chunk)>& wanted) const;

  Recipe recipe_;
  EpochOptions options_;
  std::vector<Set> sets_;
};

}  // namespace hfta::fusion
