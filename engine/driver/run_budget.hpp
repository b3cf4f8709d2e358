#pragma once
/// The time that a run and its study have used, and whether the study ends at its budget or target.

#include <atomic>
#include <string>

#include "base/clock.hpp"
#include "engine/config.hpp"
#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Begins to count when it is made. Once the study has ended, it stays so. Times are in seconds. look() and why() are
/// for one thread; the others may be called from any.
class RunBudget {
 public:
  /// `config` and `clock` must outlive this. `spent_before`: seconds of earlier runs.
  RunBudget(const StudyConfig& config, const Clock& clock, double spent_before);

  /// Time of this run.
  [[nodiscard]] double elapsed() const { return clock_.seconds() - began_; }
  /// Time of all of the study's runs.
  [[nodiscard]] double spent() const { return spent_before_ + clock_.seconds() - began_; }
  [[nodiscard]] bool out_of_time() const;

  /// Sees whether the study ends now. While trials catch up, the store gets nothing new, but time passes. Epochs and
  /// the target wait: some trials may end only when all have caught up.
  void look(const TrialTable& table, bool catching_up);
  /// Whether the budget or target has ended the study.
  [[nodiscard]] bool ended() const { return has_ended_.load(); }
  /// The budget or target that ended the study (Progress::ended_by); "": it goes on.
  [[nodiscard]] const std::string& why() const { return ended_by_; }

 private:
  const StudyConfig& config_;
  const Clock& clock_;
  double began_;
  double spent_before_;
  std::string ended_by_;
  std::atomic<bool> has_ended_{false};  ///< `ended_by_` is set.
};

}  // namespace hfta::engine
