#pragma once
/// The seam between the driver and whatever trains: fused arrays on a device, or a fake trainer in tests.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

/// A trial's whole training state (weights, buffers, optimizer, counters, how far into its epoch), as bytes:
/// safetensors.
using SlotState = std::vector<std::byte>;

/// Asked between training steps, by whichever thread trains: true ends the run early.
using Pause = std::function<bool()>;
/// A Pause that never says true.
[[nodiscard]] inline bool never() { return false; }

/// What an occupied slot did in one epoch.
struct SlotReport {
  int slot = 0;
  int epoch = 0;                          ///< The trial's own, 1-based, now finished.
  std::map<std::string, double> metrics;  ///< train_loss, val_*; NaN or infinite where training diverged.
};

/// How an array runs, for the store and for people.
struct ArrayInfo {
  int width = 0, chunk = 0, threads = 0;
  std::string device;
  std::string choices_json;  ///< Object: how it runs, how that was chosen, and what Trainer::recall needs of it.
};

/// B slots that train side by side. Used by one thread at a time. A slot is empty or holds one trial.
class TrainerArray {
 public:
  virtual ~TrainerArray() = default;
  /// Starts a trial in an empty slot. `number` keys its randomness.
  virtual void admit(int slot, int number, const trials::Params& params) = 0;
  /// Goes on with a trial from its state, bit for bit.
  virtual void insert(int slot, int number, const trials::Params& params, const SlotState& state) = 0;
  [[nodiscard]] virtual SlotState extract(int slot) = 0;
  virtual void clear(int slot) = 0;
  /// Changes the number of slots. Slots below `width` keep their trials; those above must be empty.
  virtual void resize(int width) = 0;
  /// Trains every occupied slot to the end of its epoch and evaluates it: a report of each, in order of slot. When
  /// `pause` says true it ends after the steps at hand, with nullopt: slots are then somewhere in their epoch, each
  /// perhaps elsewhere; extract() carries that, and the next call goes on from there. Where it was paused changes no
  /// bit. Throws Error{kMemory} if memory runs out, Error{kDevice} if the device fails; the slots' states are lost
  /// then.
  [[nodiscard]] virtual std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) = 0;
  /// test_* metrics of an occupied slot; empty if there is no test set.
  [[nodiscard]] virtual std::map<std::string, double> test(int slot) = 0;
  [[nodiscard]] virtual ArrayInfo info() const = 0;
};

/// A model file that trials of the study train.
struct ModelFacts {
  std::string file;                 ///< As the config names it.
  std::string fingerprint;          ///< Changes with every byte of the model.
  std::string torch_version;        ///< That exported it.
  std::vector<std::string> inputs;  ///< "x: float32 [N, 1, 8, 8]"
  std::int64_t fixed_batch = 0;     ///< The only batch size that it runs with; 0: any.
  std::vector<std::string> notes;   ///< What a user should know of it, a line each.
};

/// What arrays of a partition need of memory, predicted, in bytes.
struct MemoryNeed {
  std::int64_t slot = 0;         ///< A slot's own: trained weights, gradients and optimizer state.
  std::int64_t activations = 0;  ///< What one that is at work needs beside that: a batch's values, forward and back.
  std::int64_t shared = 0;       ///< Held once for all slots: weights, and on a GPU the data.

  /// Of `width` slots, `working` of them at a time.
  [[nodiscard]] std::int64_t total(int width, int working) const {
    return shared + width * slot + working * activations;
  }
  /// As many slots as `room` has place for, at least one; `working`: at most so many work at a time.
  [[nodiscard]] std::int64_t most_slots(std::int64_t room, int working) const {
    const std::int64_t left = room - shared;
    const std::int64_t all_at_work = left / std::max<std::int64_t>(1, slot + activations);
    if (all_at_work < working) return std::max<std::int64_t>(1, all_at_work);
    return (left - working * activations) / std::max<std::int64_t>(1, slot);
  }
};

/// A device, as its trainer tells it.
struct DeviceFacts {
  std::string name;         ///< "cpu", "cuda:1"
  std::int64_t memory = 0;  ///< Bytes; 0: unknown.
  double speed = 1;         ///< Of training, as a multiple of what the others' is measured in; above 0.
};

/// What a partition's array would be.
struct PartitionPlan {
  int width = 0;                                  ///< Recommended number of slots for many waiting trials.
  std::int64_t parameters = 0;                    ///< Trained parameters of one trial.
  std::int64_t frozen = 0;                        ///< Parameters that are not trained, held once for all trials.
  std::optional<ModelFacts> model;                ///< If it came from a file.
  std::optional<ModelFacts> evaluation;           ///< If evaluation has a file of its own.
  std::optional<MemoryNeed> memory;               ///< Unset: unknown.
  int working = std::numeric_limits<int>::max();  ///< Slots that work at a time, at most: few on a CPU.
  std::map<std::string, std::string> lowerings;   ///< Op path -> lowering, where known without training.

  /// Predicted, of an array of so many slots; nullopt: unknown.
  [[nodiscard]] std::optional<std::int64_t> bytes(int slots) const {
    return memory ? std::optional(memory->total(slots, std::min(slots, working))) : std::nullopt;
  }
};

/// One way to run a partition's arrays, as it was timed.
struct MeasuredWay {
  std::string lowering;           ///< "compiled, 2 x 1 threads"
  double slot_step_seconds = 0;   ///< A training step of an array of the planned width, by its slots.
  double samples_per_second = 0;  ///< Trial-samples.
  bool chosen = false;            ///< The fastest, which arrays of that width will run by.
  std::string why_not = {};       ///< Why nothing was timed: `lowering` names what cannot run here; "" if it was.
};

/// Makes arrays on one device, of trials whose StudyConfig::partition is equal.
class Trainer {
 public:
  virtual ~Trainer() = default;
  [[nodiscard]] virtual DeviceFacts device_facts() const = 0;
  /// Throws Error{kConfig} if a trial with these parameters could not be trained.
  virtual void check(const trials::Params& params) = 0;
  [[nodiscard]] virtual PartitionPlan plan(const trials::Params& params) = 0;
  /// Times every way to run on the real data, at the width that plan() gives, whatever it costs, and tells what cannot
  /// run here; ends early when `pause` says true. Arrays that are opened later, on this machine, run by the fastest.
  [[nodiscard]] virtual std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) = 0;
  /// The model files that checked, planned and opened tasks name, in the order in which they were met.
  [[nodiscard]] virtual std::vector<ModelFacts> models() const = 0;
  /// Has arrays of a partition run as an earlier run of the study did (its ArrayInfo::choices_json), instead of
  /// measuring. Returns "", or one line for the user where that cannot be: another machine, another LibTorch.
  [[nodiscard]] virtual std::string recall(const std::string& partition, const std::string& choices_json) = 0;
  /// An array for that partition with `width` slots. `expected_epochs`: trial-epochs it is expected to train, which
  /// bounds what may be spent on measuring lowerings; that ends early, too, when `pause` says true. Throws
  /// Error{kMemory} if memory does not suffice for so many.
  [[nodiscard]] virtual std::unique_ptr<TrainerArray> open(const trials::Params& params, int width,
                                                           double expected_epochs, const Pause& pause) = 0;
};

}  // namespace hfta::engine
