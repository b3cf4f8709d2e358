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

/// Where it puts a trial never changes what the trial computes, only how soon. Where memory does not suffice, arrays
/// become half as wide; a trial that cannot be trained alone, tried twice, has failed. Devices are known by their
/// index.
class ArrayScheduler {
 public:
  /// What the packer cannot do by itself.
  struct Calls {
    std::function<bool(int most)>
        draw;  ///< Plans at most so many more trials and puts them in the queue; false: there are none.
    std::function<bool(int draw)>
        enter;  ///< Has the store know the trials up to `draw`; false: not now, the store is locked or a stop is asked.
    std::function<void(int draw, const std::string& reason)> fail;  ///< Ends a trial that is in no slot.
    std::function<void(const std::string& line)> note;              ///< For the user.
    Pause pause;                                                    ///< Whether measuring is to end early.
  };

  struct Options {
    std::optional<int> width;  ///< The config's; unset: each partition's recommended one.
    bool refill = true;        ///< False: slots that fall empty stay so until the whole array is.
  };

  /// `trainers`: one per device, not owned. `first_array`: the study's arrays so far.
  ArrayScheduler(std::vector<Trainer*> trainers, const Options& options, int first_array, TrialTable& ledger,
                 ReadyQueue& queue, CheckpointManager& keeper, const Clock& clock, Calls calls);

  /// Opens the array `id` on the device as an earlier run left it, its trials in the slots they had: (slot, draw).
  /// Widths may decide the last bits of a sum, so a run that was stopped goes on as wide as it was. Where the array may
  /// not be so wide any more, its trials go to the queue.
  void reopen(std::size_t device, int id, const std::string& partition, int width,
              const std::vector<std::pair<int, int>>& trials);

  /// Before a round of the device: fills empty slots; opens, widens, narrows or leaves its array. What the store should
  /// know of it is added to `changes`. Throws Error{kDevice} if the device fails; see lose().
  void prepare(std::size_t device, WriteBatch& page);
  /// The device's array is gone with its slots' states: its trials go back to their last checkpoints.
  void lose(std::size_t device);
  /// The same, and the device is not used any more.
  void retire(std::size_t device);
  /// The array is gone because memory ran out in a round: from now on arrays of that partition are half as wide there.
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
  std::set<int> alone_;  ///< Draws for which memory did not suffice once, with nobody beside them.
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
