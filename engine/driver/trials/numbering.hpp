#pragma once
/// Adds planned trials to the store, which gives them their numbers.

#include <atomic>
#include <functional>

#include "base/clock.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/study_writer.hpp"

namespace hfta::engine {

/// Trials need numbers from the store. While another program locks it, those that have theirs are trained. Trials are
/// identified by their draw. Used by one thread. Its calls throw as StudyWriter::add_trials() does.
class Numbering {
 public:
  /// All must outlive this. `stop`: not 0: the run is to stop. `batch`: what has happened since the writer got the last
  /// one. `can_train`: whether some device is at work, or will be as soon as it is launched.
  Numbering(TrialTable& table, StudyWriter& writer, const Clock& clock, const std::atomic<int>& stop, WriteBatch& batch,
            std::function<bool()> can_train);

  /// Adds the trials up to `draw`; false: not now, as the store is locked or a stop is requested. With nothing left to
  /// train, this waits for the store.
  bool enter(int draw);
  /// As enter(), but waits for the store in any case; false: a stop is requested.
  bool enter_or_stop(int draw);
  /// Adds the trials up to `draw`; false: another program locks the store.
  bool try_to_enter(int draw);
  /// Adds the trials that are to begin soon, at so many trial-epochs a second.
  void enter_ahead(double rate);

  /// Whether the store was locked a moment ago, so that it is not worth while to ask it again.
  [[nodiscard]] bool is_locked() const { return clock_.seconds() < ask_store_at_; }
  /// The store was asked for something; `answered` false: another program locks it.
  void asked(bool answered);

 private:
  bool write_results();

  TrialTable& table_;
  StudyWriter& writer_;
  const Clock& clock_;
  const std::atomic<int>& stop_;
  WriteBatch& batch_;
  std::function<bool()> can_train_;
  double ask_store_at_ = 0;  ///< Time at which a store that was locked is asked for trials' numbers again.
};

}  // namespace hfta::engine
