#pragma once
/// An array of slots that is open on a device, with the trials in its slots.

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "engine/driver/trials/trial_table.hpp"
#include "engine/trainer.hpp"
#include "storage/store.hpp"

namespace hfta::engine {

/// While one thread is in run_epoch(), another one may ask for trials, names and threads. Otherwise used by one thread
/// at a time. Trials are identified by their draw.
///
/// If the device fails, or its memory does not suffice, while trials are moved, what the driver knows of them must not
/// be lost with their states. So extract(), clear(), follow() and restart() do not throw Error{kDevice} or
/// Error{kMemory}: failure() has it from then on, states are null, and the device is asked for nothing more. The other
/// calls throw it again.
class OpenArray {
 public:
  static constexpr int kEmpty = -1;

  /// `id`: the study's count of arrays.
  OpenArray(int id, std::string partition, int width, std::unique_ptr<TrainerArray> array);

  [[nodiscard]] const std::string& partition() const { return partition_; }
  [[nodiscard]] int width() const { return static_cast<int>(slots_.size()); }
  [[nodiscard]] int occupied() const;
  /// The trial in a slot, or kEmpty.
  [[nodiscard]] int draw_in(int slot) const { return slots_.at(static_cast<std::size_t>(slot)); }
  /// The trials in occupied slots, by slot.
  [[nodiscard]] std::vector<int> draws() const;
  /// The trial in the first occupied slot. REQUIRES occupied() > 0.
  [[nodiscard]] int some_draw() const;
  /// Lowest empty slot, or kEmpty.
  [[nodiscard]] int free_slot() const;

  /// Puts a trial into an empty slot: from `state`, or from the start if that is null. If this throws, the trial has
  /// not moved.
  void start(int slot, int draw, const HeldState& state, TrialTable& table);
  /// Starts a trial that continues from a copy, unless the array has failed or fails at it: then it has not moved.
  void restart(int slot, int draw, const HeldState& state, TrialTable& table);
  /// The slot of a trial, or kEmpty.
  [[nodiscard]] int slot_of(int draw) const;
  /// Makes the slot train, after an epoch that was trained again, with the identity that the lineage of the trial's
  /// state has for the next epoch.
  void follow(int slot, TrialTable& table);
  [[nodiscard]] HeldState extract(int slot);
  void clear(int slot);
  /// The error that the array failed with; null: it has not failed.
  [[nodiscard]] const std::exception_ptr& failure() const { return failure_; }
  /// Changes the width; trials in slots that are removed first move down into empty slots. If this throws, every trial
  /// is in a slot. REQUIRES width >= occupied().
  void resize(int width, TrialTable& table);

  [[nodiscard]] std::optional<std::vector<SlotReport>> run_epoch(const Pause& pause) {
    check();
    return array_->run_epoch(pause);
  }
  [[nodiscard]] bool can_borrow() const { return can_borrow_; }
  /// Number of threads of other devices that it is to train with.
  [[nodiscard]] int lent() const { return lent_; }
  void lend(int threads) { lent_ = threads; }
  /// Takes the threads that it was lent, or gives back those that it is lent no more, before an epoch. False: neither.
  bool change_threads();
  [[nodiscard]] const std::string& device() const { return device_; }
  /// The array's record for the store, if it has changed since the last call.
  [[nodiscard]] std::optional<storage::ArrayRecord> take_changes();
  [[nodiscard]] int id() const { return id_; }

 private:
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  template <typename Call>
  void attempt(const Call& call);

  int id_;
  std::string partition_;
  std::unique_ptr<TrainerArray> array_;
  std::string device_;
  bool can_borrow_;
  std::exception_ptr failure_;
  std::vector<int> slots_;
  int lent_ = 0, borrowed_ = 0;
  std::optional<ArrayInfo> known_;
};

}  // namespace hfta::engine
