#pragma once
/// Epochs over an array: order of samples, learning rates, training, evaluation.

#include <ATen/core/Tensor.h>

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
  std::vector<SampleArray> inputs;
  SampleArray target;
  std::int64_t size = 0;
};

/// Brings a dataset to where it is taken from: inputs in the dtype that the graph takes, targets that are not indices
/// in the recipe's. Numbers that take less room as they are stored keep their type until a batch is made of them. On a
/// CPU data in a file stay there, and what lies in memory is shared where its type fits; a GPU has a copy of the whole
/// set, of compact types but unsigned integers of more than 8 bits, which are widened.
[[nodiscard]] DeviceData to_device(const Dataset& data, const Graph& graph, const Recipe& recipe,
                                   const at::Device& device);
/// Bytes of the device that to_device() takes: 0 on a CPU, where data are the host's already.
[[nodiscard]] std::int64_t device_bytes(const Dataset& data, const Graph& graph, const Recipe& recipe,
                                        const at::Device& device);

/// What a slot did in one epoch.
struct EpochResult {
  int slot = 0;
  int epoch = 0;                          ///< 1-based, of the trial.
  std::map<std::string, double> metrics;  ///< train_loss, val_*.
};

/// Asked between training steps, perhaps by several threads at once: true ends the run early.
using Pause = std::function<bool()>;

struct EpochOptions {
  OrderOptions order;
  bool drop_last = false;  ///< Leaves out the epoch's last batch if it is short.
  std::uint64_t seed = 0;  ///< The study's.
  std::int64_t fixed_batch =
      0;  ///< Graph::fixed_batch: short batches are left out of training and filled up in evaluation.
  std::int64_t largest_batch = 0;  ///< Graph::largest_batch
  /// Graph::limits. Training's batches are the caller's to choose within them; in evaluation what breaks them is filled
  /// up.
  BatchLimits limits = {};
};

/// Runs whole epochs. Each slot is at its own epoch: slots at the same one share their batches, others gather theirs.
/// The data must outlive it.
class Epochs {
 public:
  Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation);

  [[nodiscard]] std::int64_t steps_per_epoch() const;
  /// Trains every occupied slot to the end of its epoch and evaluates it. train_loss is the mean over the epoch's
  /// samples of the loss when each was trained on. In order of slot.
  [[nodiscard]] std::vector<EpochResult> run(Array& array) const;
  /// The same, unless `pause` says true: then nothing, and each slot is somewhere in its epoch, as its SlotProgress
  /// tells. The next call goes on from there, with slots at whatever places; where it was paused changes no bit.
  /// Evaluation itself is not interrupted. Throws Error{kStorage} for a slot behind the end of its epoch.
  [[nodiscard]] std::optional<std::vector<EpochResult>> run(Array& array, const Pause& pause) const;
  /// Metrics of one occupied slot over a whole set in evaluation mode, each name behind `prefix`.
  [[nodiscard]] std::map<std::string, double> evaluate(Array& array, int slot, const DeviceData& data,
                                                       const std::string& prefix) const;

 private:
  using OrderKey = std::pair<int, std::uint64_t>;                   ///< epoch, trial key
  using Orders = std::map<OrderKey, at::Tensor>;                    ///< Indices on the device.
  using ChunkMetrics = std::vector<std::map<std::string, double>>;  ///< By slot of the chunk.
  class Run;
  using Runs = std::vector<std::unique_ptr<Run>>;
  void check_places(const Array& array) const;
  void train_in_step(Array& array, Runs& runs, const Orders& orders, const Pause& asked) const;
  [[nodiscard]] std::vector<EpochResult> finish(Array& array, Runs& runs) const;
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> range_of(std::int64_t step) const;
  [[nodiscard]] OrderKey order_key(const Array& array, int slot) const;
  [[nodiscard]] Orders orders_for(const Array& array) const;
  [[nodiscard]] Samples samples_in(const at::Tensor& order) const;
  [[nodiscard]] std::int64_t evaluation_batch() const;
  [[nodiscard]] std::int64_t filled_up(std::int64_t n) const;
  /// Samples as the graph takes them; without those that fill it up, [begin, end) of the data.
  struct EvaluationBatch {
    Samples samples;
    std::int64_t begin, end;
  };
  [[nodiscard]] std::vector<EvaluationBatch> evaluation_batches(const DeviceData& data) const;
  [[nodiscard]] std::vector<ChunkMetrics> evaluate_chunks(Array& array, const DeviceData& data,
                                                          const std::function<bool(int chunk)>& wanted) const;

  Recipe recipe_;
  EpochOptions options_;
  const DeviceData& train_;
  const DeviceData* validation_;
};

}  // namespace hfta::fusion
