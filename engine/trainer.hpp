#pragma once
/// The interface between the driver and the code that trains: fused arrays on a device, or a fake trainer in tests.

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

#include "base/stamp.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// A trial's whole training state (weights, buffers, optimizer, counters, position in its epoch), as the bytes of a
/// safetensors file.
using SlotState = std::vector<std::byte>;

/// Called between training steps, perhaps by several threads at once; true ends the call early.
using Pause = std::function<bool()>;
/// A Pause that always returns false.
[[nodiscard]] inline bool never() { return false; }

/// The result of one epoch of an occupied slot.
struct SlotReport {
  int slot = 0;
  int epoch = 0;  ///< The trial's epoch that has just finished, 1-based.
  /// train_loss, val_*; NaN or infinite where training diverged. `parameters` (kParameterCount) if it is an objective.
  std::map<std::string, double> metrics;
};

/// How an array runs, for the store and for messages.
struct ArrayInfo {
  int width = 0, chunk = 0, threads = 0;
  std::string device;
  std::string choices_json;  ///< JSON object: how the array runs, how this was chosen, and what Trainer::recall needs.
};

/// B slots that train side by side. Used by one thread at a time. Each slot is empty or holds one trial.
class TrainerArray {
 public:
  virtual ~TrainerArray() = default;
  /// Starts a trial in an empty slot. `number` keys its randomness.
  virtual void admit(int slot, int number, const trials::Params& params) = 0;
  /// Puts a trial into an empty slot and resumes it from its state, bit for bit.
  virtual void insert(int slot, int number, const trials::Params& params, const SlotState& state) = 0;
  [[nodiscard]] virtual SlotState extract(int slot) = 0;
  virtual void clear(int slot) = 0;
  /// Changes the number of slots. Slots below `width` keep their trials; those above must be empty.
  virtual void resize(int width) = 0;
  /// Trains every occupied slot to the end of its epoch and evaluates it: returns a report for each, in order of slot.
  /// When `pause` returns true, ends after the current steps and returns nullopt. Each slot is then somewhere within
  /// its epoch, not all at the same step; extract() includes this position, and the next call continues from it. A
  /// pause changes no bit of the results. Throws Error{kMemory} if memory runs out, Error{kDevice} if the device fails;
  /// the slots' states are then lost.
  [[nodiscard]] virtual std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) = 0;
  /// Whether threads that idle devices lend make no bit of difference to the results; never changes.
  [[nodiscard]] virtual bool can_borrow() const = 0;
  /// Until the next call, trains with `lent` threads of the CPU beside its own; 0: with its own alone. Between calls of
  /// run_epoch(), be it within an epoch. Takes time, and not as many threads where memory does not suffice for more.
  /// info() says how the array runs on its own. Throws as resize() does. REQUIRES can_borrow(), `lent` >= 0.
  virtual void borrow(int lent) = 0;
  /// test_* metrics of an occupied slot; empty if there is no test set.
  [[nodiscard]] virtual std::map<std::string, double> test(int slot) = 0;
  [[nodiscard]] virtual ArrayInfo info() const = 0;
};

/// A model file that trials of the study train.
struct ModelFacts {
  std::string file;                 ///< The file's name in the config.
  std::string fingerprint;          ///< Changes with every byte of the model.
  std::string torch_version;        ///< Version of the torch that exported it.
  std::vector<std::string> inputs;  ///< "x: float32 [N, 1, 8, 8]"
  std::int64_t fixed_batch = 0;     ///< The only batch size that the model runs with; 0: any.
  std::vector<std::string> notes;   ///< Facts that a user should know about the model, a line each.
  FileStamps stamps = {};           ///< Of the file, as it lay before it was read.
};

/// Data that trials of the study train on.
struct DataFacts {
  std::string file;         ///< The name of the training data, without their folder.
  std::string reading;      ///< A checksum of which numbers are read of which files, wherever the config's folder lies.
  std::string fingerprint;  ///< Changes with these numbers.
  FileStamps stamps = {};   ///< Of the files, as they lay before they were read; empty for a built-in set.
};

/// The memory that arrays of a partition are predicted to need, in bytes.
struct MemoryNeed {
  std::int64_t slot = 0;         ///< Per slot: trained weights, buffers and optimizer state; gradients where kept.
  std::int64_t activations = 0;  ///< Per working slot, besides: buffers of a batch's forward and backward.
  std::int64_t shared = 0;       ///< Held once for all slots: weights, kept features and, on a GPU, the data.

  /// The need of `width` slots, `working` of which work at a time.
  [[nodiscard]] std::int64_t total(int width, int working) const {
    return shared + width * slot + working * activations;
  }
  /// The number of slots that fit in `room` bytes, at least one; at most `working` of them work at a time.
  [[nodiscard]] std::int64_t most_slots(std::int64_t room, int working) const {
    const std::int64_t left = room - shared;
    const std::int64_t all_at_work = left / std::max<std::int64_t>(1, slot + activations);
    if (all_at_work < working) return std::max<std::int64_t>(1, all_at_work);
    return (left - working * activations) / std::max<std::int64_t>(1, slot);
  }
};

/// A device, as its trainer describes it.
struct DeviceFacts {
  std::string name;         ///< "cpu", "cuda:1"
  std::int64_t memory = 0;  ///< Bytes; 0: unknown.
  double speed = 1;         ///< Training speed, in a unit that all devices share; above 0.
  /// Number of slots that keep it busy: further slots save no time. Unset: every further slot helps.
  std::optional<int> busy_slots = {};
  int threads = 0;             ///< CPU threads that it trains with, and may lend when it is idle; 0: it lends none.
  std::vector<int> cpus = {};  ///< CPUs that these threads keep to; empty: any.
};

/// A group of parameters with numbers of its own.
struct GroupPlan {
  std::vector<std::string> params;  ///< Patterns for the names of its parameters.
  std::int64_t parameters = 0;      ///< Number of its trained parameters.
};

/// How layers whose weights are frozen are run.
struct FeaturePlan {
  bool shared = false;                ///< They run once for each sample, for all trials; their results are kept.
  std::int64_t samples = 0;           ///< Number of samples in all sets.
  std::int64_t bytes_per_sample = 0;  ///< Size of one sample's results.
  std::int64_t budget = 0;            ///< Bytes of results that may be kept.
  std::int64_t kept_bytes = 0;        ///< Bytes of results that will be kept.
  std::int64_t weight_bytes = 0;      ///< Size of the frozen weights, held once for all arrays.
  std::string prevented;              ///< Why frozen layers are not shared, and what to do about it; "": they are.
};

/// One way to run a partition's arrays, beside others that need another amount of memory.
struct MemoryWay {
  std::string lowering;  ///< Text of the lowering, like MeasuredWay::lowering.
  MemoryNeed need;
  int working = 1;    ///< The most slots that work at a time.
  int width = 0;      ///< The most slots that fit, of those wanted; 0: not even one does.
  bool open = false;  ///< Arrays may run this way: of all such ways the fastest is chosen.
};

/// How a partition's arrays keep to a limit.
struct MemoryPlan {
  std::int64_t limit = 0;       ///< Bytes.
  bool plenty = true;           ///< The first way fits as well as any: nothing is gained by another.
  std::vector<MemoryWay> ways;  ///< All ways, from the one that needs most memory on down.
};

/// The array that a partition would get.
struct PartitionPlan {
  int width = 0;                                  ///< Recommended number of slots for many waiting trials.
  std::int64_t parameters = 0;                    ///< Trained parameters of one trial.
  std::int64_t frozen = 0;                        ///< Parameters that are not trained, held once for all trials.
  std::vector<GroupPlan> groups;                  ///< The optimizer's groups; other parameters are in none.
  std::optional<ModelFacts> model;                ///< Set if the model came from a file.
  std::optional<ModelFacts> evaluation;           ///< Set if evaluation has a file of its own.
  std::optional<MemoryNeed> memory;               ///< Need of the way that is tried first; unset: unknown.
  std::optional<MemoryPlan> budget;               ///< How arrays keep to the limit; unset: unknown.
  int working = std::numeric_limits<int>::max();  ///< The most slots that work at a time: few on a CPU.
  std::map<std::string, std::string> lowerings;   ///< Op path -> lowering, where known without training.
  std::optional<FeaturePlan> features;  ///< Unset: no layers are frozen, or keeping their results would not pay.

  /// The predicted need of an array of that many slots; nullopt: unknown.
  [[nodiscard]] std::optional<std::int64_t> bytes(int slots) const {
    return memory ? std::optional(memory->total(slots, std::min(slots, working))) : std::nullopt;
  }
};

/// The measured time of one way to run a partition's arrays.
struct MeasuredWay {
  std::string lowering;           ///< "compiled, 2 x 1 threads"
  double slot_step_seconds = 0;   ///< Time of a training step of an array of the planned width, divided by its slots.
  double samples_per_second = 0;  ///< Trial-samples.
  bool chosen = false;            ///< It is the fastest; arrays of that width will run this way.
  std::string note = {};          ///< Ops of the model that it runs otherwise than the rest; "": none.
  std::string why_not = {};       ///< Why nothing was timed: `lowering` names what cannot run here; "" if it was timed.
};

/// Makes arrays on one device; the trials of an array have equal StudyConfig::partition.
class Trainer {
 public:
  virtual ~Trainer() = default;
  [[nodiscard]] virtual DeviceFacts device_facts() const = 0;
  /// Throws Error{kConfig} if a trial with these parameters could not be trained.
  virtual void check(const trials::Params& params) = 0;
  [[nodiscard]] virtual PartitionPlan plan(const trials::Params& params) = 0;
  /// Times every way to run on the real data, at the width that plan() returns, without a limit on the time spent, and
  /// says which ways cannot run here; ends early when `pause` returns true. Arrays that are opened later on this
  /// machine run by the fastest.
  [[nodiscard]] virtual std::vector<MeasuredWay> measure(const trials::Params& params, const Pause& pause) = 0;
  /// The model files of all tasks that were checked, planned or opened, in the order of their first use.
  [[nodiscard]] virtual std::vector<ModelFacts> models() const = 0;
  /// The data of all these tasks, in the order of their first use.
  [[nodiscard]] virtual std::vector<DataFacts> data() const = 0;
  /// Makes arrays of a partition run as in an earlier run of the study (its ArrayInfo::choices_json), instead of
  /// measuring. Returns "", or one line for the user if that is impossible: another machine, another LibTorch.
  [[nodiscard]] virtual std::string recall(const std::string& partition, const std::string& choices_json) = 0;
  /// The predicted time of a training step of an array of that many slots, from what was measured when an array of the
  /// partition was opened here; nullopt: nothing was measured.
  [[nodiscard]] virtual std::optional<double> step_seconds(const std::string& /*partition*/, int /*slots*/) const {
    return std::nullopt;
  }
  /// An array for that partition with `width` slots. `expected_epochs`: the trial-epochs that the array is expected to
  /// train; they limit the time spent on measuring lowerings. Measuring also ends early when `pause` returns true.
  /// Throws Error{kMemory} if there is not enough memory for that many slots; Error{kDevice} if it is missing at one of
  /// several ranks, as the device is lost then.
  [[nodiscard]] virtual std::unique_ptr<TrainerArray> open(const trials::Params& params, int width,
                                                           double expected_epochs, const Pause& pause) = 0;
};

}  // namespace hfta::engine
