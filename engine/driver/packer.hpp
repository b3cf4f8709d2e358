#pragma once
/// Puts trials into slots: which partition a device works on, how wide, and who comes next when a slot falls empty.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "engine/driver/keeper.hpp"
#include "engine/driver/ledger.hpp"
#include "engine/driver/open_array.hpp"
#include "engine/driver/queue.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// Where it puts a trial never changes what the trial computes, only how soon.
class Packer {
 public:
  /// Draws some more trials and puts them in the queue; false when there are none left.
  using DrawMore = std::function<bool()>;

  /// `trainers`: one per device, not owned. `width`: the config's; unset: each partition's recommended one.
  /// `first_array`: the study's arrays so far.
  Packer(std::vector<Trainer*> trainers, std::optional<int> width, int first_array, Ledger& ledger, ReadyQueue& queue,
         Keeper& keeper, const Clock& clock, DrawMore draw_more);

  /// Opens the array `id` as an earlier run left it, its trials with their states in the slots they had: (slot, draw).
  /// Widths may decide the last bits of a sum, so a run that was stopped goes on as wide as it was. Where no device is
  /// free, or the array may not be so wide any more, its trials go to the queue.
  void reopen(int id, const std::string& partition, int width, const std::vector<std::pair<int, int>>& trials);

  /// Before a round: fills empty slots, opens arrays on idle devices, widens, narrows and closes arrays. What the store
  /// should know of it is added to `changes`.
  void prepare(storage::Changes& changes);
  /// The array of each device, null where none is open.
  [[nodiscard]] const std::vector<std::unique_ptr<OpenArray>>& arrays() const { return arrays_; }
  [[nodiscard]] bool any_open() const;

 private:
  void fill(OpenArray& array, storage::Changes& changes);
  [[nodiscard]] int ahead() const;
  void supply(const std::string& partition, int wanted);
  void open_idle(storage::Changes& changes);
  void open(std::size_t device, const std::string& partition, int parts, storage::Changes& changes);
  void fit(std::size_t device, storage::Changes& changes);
  [[nodiscard]] bool worth_leaving(const OpenArray& array) const;
  void leave(std::size_t device);
  int limit(std::size_t device, const std::string& partition, int draw);
  [[nodiscard]] double expected_epochs(const std::string& partition) const;

  std::vector<Trainer*> trainers_;
  std::vector<std::unique_ptr<OpenArray>> arrays_;
  std::map<std::pair<std::size_t, std::string>, int> limits_;
  std::optional<int> width_;
  int next_array_;
  int widest_ = 16;  ///< Widest limit met; how far draws run ahead follows from it.
  Ledger& ledger_;
  ReadyQueue& queue_;
  Keeper& keeper_;
  const Clock& clock_;
  DrawMore draw_more_;
};

}  // namespace hfta::engine
