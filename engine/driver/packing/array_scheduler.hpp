#pragma once
/// Puts trials into slots: which partition a device works on, how wide, and who comes next when a slot falls empty.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/driver/arrays/device_arrays.hpp"
#include "engine/driver/arrays/open_array.hpp"
#include "engine/driver/devices/device_times.hpp"
#include "engine/driver/devices/lending.hpp"
#include "engine/driver/packing/partition_choice.hpp"
#include "engine/driver/packing/sharing.hpp"
#include "engine/driver/packing/slot_draws.hpp"
#include "engine/driver/packing/width_limits.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// The slot of a trial never changes what the trial computes, only how soon. If memory runs out, arrays become half as
/// wide; a trial fails if memory does not suffice for it alone, after two tries. Devices are identified by their
/// index.
class ArrayScheduler {
 public:
  /// The calls that the scheduler makes on the driver.
  struct Calls {
    SlotDraws::Draw draw;
    std::function<bool(int draw)>
        enter;  ///< Adds the trials up to `draw` to the store; false: not now, as it is locked or a stop is requested.
    std::function<void(int draw, const std::string& reason)> fail;  ///< Ends a trial that is in no slot.
    std::function<void(const std::string& line)> note;              ///< Tells the user a line.
    Pause pause;                                                    ///< Whether measuring is to end early.
    std::function<void()> opens;  ///< An array is about to be opened, which takes its time.
  };

  struct Options {
    std::optional<int> width;  ///< The config's width; unset: each partition's recommended one.
    bool refill = true;        ///< False: emptied slots stay empty until the whole array is empty.
  };

  /// `trainers`: one per device, not owned. `first_array`: the study's arrays so far.
  ArrayScheduler(const std::vector<Trainer*>& trainers, const Options& options, int first_array, TrialTable& table,
                 ReadyQueue& queue, CheckpointManager& checkpoints, const Clock& clock, Calls calls);
  ArrayScheduler(const ArrayScheduler&) = delete;
  ArrayScheduler& operator=(const ArrayScheduler&) = delete;

  /// Opens the array `id` on the device as an earlier run left it, with its trials in the slots they had: (slot, draw).
  /// A width may affect the last bits of a sum, so a resumed run keeps the width of the stopped run. If the array may
  /// not be that wide any more, its trials go to the queue.
  void reopen(std::size_t device, int id, const std::string& partition, int width,
              const std::vector<std::pair<int, int>>& trials);

  /// The device's array has trained that long; `ended`: to the end of the epoch, not only up to a pause. Returns the
  /// seconds of the epoch so far.
  double timed(std::size_t device, double seconds, bool ended);
  /// How a device that is not idle takes part in lending: what its array still has to train until the next decisions
  /// on its trials. `cost`: seconds that a change of its threads took; 0: there was none yet.
  [[nodiscard]] LendingDevice borrower(std::size_t device, double cost) const;
  /// Makes the device give up trials, between its rounds, if the devices of its array's partition would be done clearly
  /// sooner with the trials divided otherwise: those that it has too many, which prepare() of the other devices takes.
  /// Does nothing while trials wait for slots, or while more are to be drawn.
  void share(std::size_t device);
  /// Prepares a round of the device: fills empty slots; opens, widens, narrows or leaves its array. `rounds`: the
  /// study's rounds that are over. Throws Error{kDevice} if the device fails; see lose().
  void prepare(std::size_t device, int rounds);
  /// The device's array and its slots' states are lost: its trials go back to their last checkpoints.
  void lose(std::size_t device);
  /// Does what lose() does, and uses the device no more.
  void retire(std::size_t device);
  /// The array is lost because memory ran out in a round: from now on arrays of that partition are half as wide there.
  void run_out_of_memory(std::size_t device, const std::string& what);

  /// The most slots of the device's arrays of a partition; `draw`: one of the partition's trials. Throws what
  /// Trainer::plan() throws.
  [[nodiscard]] int most_slots(std::size_t device, const std::string& partition, int draw) {
    return limits_.limit(device, partition, draw);
  }
  /// The array of each device, null where none is open.
  [[nodiscard]] const DeviceArrays::Arrays& arrays() const { return devices_.all(); }

 private:
  void fill(std::size_t device);
  void seat(OpenArray& array, int slot, int draw);
  [[nodiscard]] std::optional<std::string> partition_to_open(std::size_t device);
  [[nodiscard]] int width_to_open(std::size_t device, const std::string& partition, int most);
  [[nodiscard]] bool try_to_open(std::size_t device);
  void fit(std::size_t device);
  void leave(std::size_t device);
  void give_up(std::size_t device, int count);
  void put_back(OpenArray& array, int draw);
  void halve(std::size_t device, int draw, int width, const std::string& what);
  [[nodiscard]] double expected_epochs(const std::string& partition) const;

  TrialTable& table_;
  ReadyQueue& queue_;
  CheckpointManager& checkpoints_;
  const Clock& clock_;
  Calls calls_;
  Options options_;
  int next_array_;
  std::set<int> alone_;  ///< Draws that ran out of memory once with no other trial beside them.
  DeviceArrays devices_;
  DeviceTimes times_;
  WidthLimits limits_;
  // What follows asks what is above, and keeps no trial.
  Sharing sharing_;
  PartitionChoice choice_;
  SlotDraws draws_;
};

}  // namespace hfta::engine
