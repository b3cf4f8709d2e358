#pragma once
/// Puts trials into slots: which partition a device works on, how wide, and who comes next when a slot falls empty.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/driver/checkpoint_manager.hpp"
#include "engine/driver/open_array.hpp"
#include "engine/driver/queue.hpp"
#include "engine/driver/trial_table.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// The slot of a trial never changes what the trial computes, only how soon. If memory runs out, arrays become half as
/// wide; a trial fails if memory does not suffice for it alone, after two tries. Devices are identified by their
/// index.
class ArrayScheduler {
 public:
  /// The calls that the scheduler makes on the driver.
  struct Calls {
    std::function<bool(int most)>
        draw;  ///< Plans at most that many more trials and puts them in the queue; false: there are none.
    std::function<bool(int draw)>
        enter;  ///< Adds the trials up to `draw` to the store; false: not now, as it is locked or a stop is requested.
    std::function<void(int draw, const std::string& reason)> fail;  ///< Ends a trial that is in no slot.
    std::function<void(const std::string& line)> note;              ///< For the user.
    Pause pause;                                                    ///< Whether measuring is to end early.
  };

  struct Options {
    std::optional<int> width;  ///< The config's; unset: each partition's recommended one.
    bool refill = true;        ///< False: emptied slots stay empty until the whole array is empty.
  };

  /// `trainers`: one per device, not owned. `first_array`: the study's arrays so far.
  ArrayScheduler(std::vector<Trainer*> trainers, const Options& options, int first_array, TrialTable& ledger,
                 ReadyQueue& queue, CheckpointManager& keeper, const Clock& clock, Calls calls);

  /// Opens the array `id` on the device as an earlier run left it, with its trials in the slots they had: (slot, draw).
  /// A width may affect the last bits of a sum, so a resumed run keeps the width of the stopped run. If the array may
  /// not be that wide any more, its trials go to the queue.
  void reopen(std::size_t device, int id, const std::string& partition, int width,
              const std::vector<std::pair<int, int>>& trials);

  /// Before a round of the device: fills empty slots; opens, widens, narrows or leaves its array. The records
  /// of this for the store are added to `changes`. Throws Error{kDevice} if the device fails; see lose().
  void prepare(std::size_t device, WriteBatch& page);
  /// The device's array and its slots' states are lost: its trials go back to their last checkpoints.
  void lose(std::size_t device);
  /// The same, and the device is not used any more.
  void retire(std::size_t device);
  /// The array is lost because memory ran out in a round: from now on arrays of that partition are half as wide there.
  void run_out_of_memory(std::size_t device, const std::string& what);

  /// The array of each device, null where none is open.
  [[nodiscard]] const std::vector<std::unique_ptr<OpenArray>>& arrays() const { return arrays_; }

 private:
  void fill(OpenArray& array, WriteBatch& page);
  void seat(OpenArray& array, int slot, int draw);
  [[nodiscard]] std::optional<std::string> partition_to_open(std::size_t device);
  [[nodiscard]] bool try_to_open(std::size_t device, WriteBatch& page);
  void fit(std::size_t device, WriteBatch& page);
  void leave(std::size_t device);
  void halve(std::size_t device, int draw, int width, const std::string& what);
  void draw_for(std::size_t device);
  void plan_ahead();
  [[nodiscard]] std::string choose_partition(std::size_t device) const;
  [[nodiscard]] bool worth_leaving(const OpenArray& array) const;
  [[nodiscard]] int parts_for(const std::string& partition) const;
  [[nodiscard]] int limit(std::size_t device, const std::string& partition, int draw);
  [[nodiscard]] double expected_epochs(const std::string& partition) const;

  std::vector<Trainer*> trainers_;
  std::vector<DeviceFacts> facts_;
  std::vector<std::unique_ptr<OpenArray>> arrays_;
  std::map<std::pair<std::size_t, std::string>, int> limits_;
  std::set<int> alone_;  ///< Draws that ran out of memory once with no other trial beside them.
  Options options_;
  int next_array_;
  int widest_ = 16;  ///< Widest limit met; how far draws run ahead follows from it.
  TrialTable& ledger_;
  ReadyQueue& queue_;
  CheckpointManager& keeper_;
  const Clock& clock_;
  Calls calls_;
};

}  // namespace hfta::engine
