#pragma once
/// The fused array: B slots that train one graph side by side, each with its own weights, optimizer state,
/// hyperparameters and randomness.
///
/// A slot's numbers never depend on its neighbours: not on their data, not on their values (a NaN does not spread), and
/// not on whether there are neighbours. With the same Lowering they are bit for bit the same in any slot of any array.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusion/collectives.hpp"
#include "fusion/graph.hpp"
#include "fusion/lowering.hpp"
#include "fusion/recipe.hpp"
#include "fusion/samples.hpp"
#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// The trial that trains in a slot.
struct SlotInit {
  std::uint64_t seed = 0;  ///< Keys initial weights and dropout, together with the array's study seed.
  SlotHyper hyper = {};
  int data = 0;  ///< Number of the data set that it trains on (Epochs::add).
};

/// A slot's state as bytes: a safetensors file of weights and buffers under the model's own names, optimizer state as
/// `optimizer.<state>.<weight>`, and its SlotProgress in the metadata (`epoch_step`, `epoch_loss` and `epoch_weight`,
/// the latter two the bits of a double in hexadecimal, where it was paused; `batches` and `accumulated` where batches
/// are accumulated). In the midst of a step sums of gradients are `optimizer.gradient.<weight>`;
/// the optimizer of a phase k behind the first has `optimizer.phase<k>.<state>.<weight>`; bounds of values that are
/// compressed are `optimizer.bounds`. The same bytes give
/// the same slot, bit for bit, in any array of an equal graph and dtype.
using StateBytes = std::vector<std::byte>;

/// Counters of a slot in a phase of its steps behind the first.
struct PhaseProgress {
  std::int64_t step = 0;                    ///< Optimizer steps taken.
  double epoch_loss = 0, epoch_weight = 0;  ///< Sums over the epoch so far, as in SlotProgress.

  bool operator==(const PhaseProgress&) const = default;
};

/// Counters of a slot.
struct SlotProgress {
  std::int64_t step = 0;  ///< Optimizer steps taken.
  int epoch = 0;          ///< Epochs finished.
  // The position of the last pause in the epoch; 0 between epochs. While an epoch runs they keep the last pause.
  std::int64_t epoch_step = 0;  ///< Steps of that epoch taken.
  double epoch_loss = 0;        ///< Sum over the epoch's batches so far of the loss before the step, times the weight.
  /// Sum of the batches' weights: of their samples, unless the graph says otherwise. NaN: the state does not say it,
  /// and it is the number of samples.
  double epoch_weight = 0;
  std::int64_t batches = 0;  ///< Batches taken, which randomness is counted by: `step`, unless they are accumulated.
  std::int64_t accumulated = 0;           ///< Batches taken since the last optimizer step.
  std::vector<PhaseProgress> later = {};  ///< Counters of the phases behind the first.
};

/// How the ranks of a group share an array.
enum class Shares {
  kBatches,  ///< Each has all slots, and runs some samples of every batch.
  kStages,   ///< Each has some layers of all slots: a stage of a pipeline, which whole batches go through.
};

/// How an array is made. Members that have a default need not be named.
struct ArrayOptions {
  Lowering lowering = {};
  int width = 1;                 ///< Slots.
  std::uint64_t study_seed = 0;  ///< Keys initial weights and dropout, together with each slot's seed.
  at::Device device = at::kCPU;  ///< "cpu", "cuda:0".
  /// If set, steps are captured and replayed if possible (fusion/step_graph.hpp); cuda_graphs() makes one.
  std::shared_ptr<StepGraphBackend> graphs = nullptr;
  /// If set, each rank of it has such an array, makes the same calls, and hands each step its share of the batch
  /// (share_of_batch by `parts`; Batch::earlier, Batch::counts). Slots then take the steps of whole batches, up to
  /// rounding, and are the same bits at all ranks. It must outlive the array. The constructor throws Error{kConfig} for
  /// a model whose batches cannot be divided (fusion/divided_batches.hpp), and for a device that is no CPU.
  Collectives* group = nullptr;
  std::vector<int> parts = {};  ///< One for each rank of `group`; empty: equal ones.
  /// With Shares::kStages each rank holds the weights of its stage alone, and is handed whole batches. Slots take the
  /// steps of one device: to the bit, unless a cut between stages separates calls that one kernel would compute. While
  /// one stage works on a slot's batch, others work on those of other slots. Losses are the same at all ranks; rank 0
  /// alone has answers. The constructor throws Error{kConfig} for what a pipeline cannot train (fusion/staged.hpp), and
  /// for a lowering that is not compiled.
  Shares shares = Shares::kBatches;
};

class Array {
 public:
  /// `graph`: a model's, which gets the recipe's loss (with_loss). Slots are empty.
  /// Whether GPUs may use TF32 is a process-wide setting: that of the last array made. On a GPU, cuDNN is set, for the
  /// whole process, to deterministic kernels without benchmarks. Throws Error{kConfig} where verify()
  /// does, for an op or precision that cannot be run so, for impossible counts; Error{kDevice}: there is no such GPU.
  Array(const Graph& graph, Recipe recipe, ArrayOptions options);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] int width() const;
  /// The group of ranks; null: this array trains on its own.
  [[nodiscard]] Collectives* group() const;
  /// Each rank's part of a batch (share_of_batch); empty where ranks share no batches.
  [[nodiscard]] const std::vector<int>& parts() const;
  /// Whether step() is handed this rank's share of each batch.
  [[nodiscard]] bool divides_batches() const;
  /// Whether predict() and evaluate() give something here: not behind rank 0 of a pipeline, where they are called all
  /// the same.
  [[nodiscard]] bool has_answers() const;
  [[nodiscard]] const Lowering& lowering() const;
  [[nodiscard]] bool occupied(int slot) const;
  [[nodiscard]] SlotProgress progress(int slot) const;
  /// The slot's SlotInit, with SlotHyper::groups filled up.
  [[nodiscard]] const SlotInit& init_of(int slot) const;
  /// Learning rates that step() takes for a slot: for each phase one, and one for each of its parameter groups.
  [[nodiscard]] int rates_per_slot() const;
  /// Number of phases of a step: at least 1 (Recipe::phases).
  [[nodiscard]] int phases() const;

  /// Fills an empty slot: weights from the graph's Init, drawn on the host from (study seed, init.seed).
  void admit(int slot, const SlotInit& init);
  /// Fills an empty slot from extract()'s bytes. Throws Error{kStorage} if they do not fit this graph; the slot is then
  /// still empty.
  void insert(int slot, const SlotInit& init, std::span<const std::byte> state);
  /// The state of an occupied slot. In a pipeline all ranks call this, and get the same bytes.
  [[nodiscard]] StateBytes extract(int slot) const;
  /// Copies, on the host, of an occupied slot's weights and buffers by the model's own names, in its order and shapes:
  /// a state dict. Weights that slots share are among them; in a pipeline, those of this stage.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> weights(int slot) const;
  /// Empties a slot. Empty slots cost nothing where chunk is 1.
  void clear(int slot);
  /// Slots below `width` keep what they hold; those above must be empty. If this or lower() fails half way, for
  /// example because memory runs out, the array is lost: every later call throws Error{kInternal}.
  void resize(int width);
  /// Rebuilds the array with another lowering; every slot keeps its state.
  void lower(const Lowering& lowering);

  /// Slots are dealt to chunks in order: chunk k holds slots [k*c, min((k+1)*c, width)).
  [[nodiscard]] int chunks() const;
  [[nodiscard]] int first_slot(int chunk) const;
  /// The number of slots that run together, c, including padding beyond the width.
  [[nodiscard]] int slots_per_chunk() const;
  /// Runs `work(chunk)` for every chunk that has an occupied slot, on the workers; returns when all are done (on a GPU:
  /// enqueued; each chunk has its own stream, and the caller's stream waits for all of them). The first exception is
  /// rethrown. Where batches are divided one chunk after the other, on all threads.
  void for_each_chunk(const std::function<void(int chunk)>& work);

  /// Whether some layers are the same for all slots (a frozen backbone), so that chunks with the same samples should
  /// share them.
  [[nodiscard]] bool shares_layers() const;
  /// Runs the layers that all slots share, once, on all the array's threads.
  void prepare(Samples& samples, SampleUse use);

  /// One batch, and so one optimizer step unless gradients are accumulated (SlotHyper::accumulate), of every occupied
  /// slot of the chunk; `rates`, [c, rates_per_slot()] row-major, are the learning
  /// rates of its slots, phase by phase: of parameters in no group, and of each group; none: 0. Adds to each phase's of
  /// `losses`, [2, c] float64 on the device, each slot's loss before the step times the batch's weight, and that
  /// weight: its number of samples, unless the loss counts otherwise (empty slots: any value). Call from
  /// for_each_chunk, or from one thread at a time.
  void step(int chunk, const Batch& batch, std::span<const double> rates, std::span<at::Tensor> losses);
  void step(int chunk, const Batch& batch, std::span<const double> rates, at::Tensor& losses) {
    step(chunk, batch, rates, std::span(&losses, 1));
  }
  /// The chunk's accumulators for step(), by phase: [2, c] float64 zeros on the device. Captured steps reuse one buffer
  /// per chunk and phase, so the tensors that the last call returned may be zeroed as well.
  [[nodiscard]] std::vector<at::Tensor> fresh_losses(int chunk);
  /// Forward in evaluation mode: the first output, [c, N, ...] (or [N, ...] where slots_per_chunk() is 1). Records no
  /// gradient. Undefined without has_answers().
  [[nodiscard]] at::Tensor predict(int chunk, const Samples& samples);
  /// Runs like predict(), and returns all outputs of evaluation (fusion/task_graph.hpp).
  [[nodiscard]] std::vector<at::Tensor> evaluate(int chunk, const Samples& samples);
  /// Records that an occupied slot was paused in mid-epoch: SlotProgress::epoch_step, and for each phase epoch_loss and
  /// epoch_weight, which `sums` has in pairs.
  void pause_epoch(int slot, std::int64_t step, std::span<const double> sums);
  /// Adds one finished epoch to every occupied slot of the chunk.
  void finish_epoch(int chunk);

  /// Gradients of the last step by weight name, [c, ...]: for tests and tools. Kept only after keep_gradients().
  void keep_gradients();
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> gradients(int chunk) const;
  /// Bytes that one slot's weights, buffers and optimizer state take.
  [[nodiscard]] std::int64_t bytes_per_slot() const;
  /// Bytes of the weights that slots share.
  [[nodiscard]] std::int64_t shared_bytes() const;
  /// Bytes that the array holds between steps: slots, including empty ones, what they share, and the workspaces that
  /// its executor keeps.
  [[nodiscard]] std::int64_t held_bytes() const;
  /// How often the layers that slots share were computed for training.
  [[nodiscard]] std::int64_t shared_runs() const;
  /// Counts of training steps since the last resize() or lower(): captured, replayed, op by op. All zero on a plain
  /// CPU.
  [[nodiscard]] StepCounts step_counts() const;
  /// Candidate names in use, by node path; "batched" or "per_slot" by op for ops without a rule. Empty where slots run
  /// one by one.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> choices() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hfta::fusion
