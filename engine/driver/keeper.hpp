#pragma once
/// Which training states lie on disk: those that a stopped run goes on from, and the weights of the best finished
/// trials.

#include <optional>
#include <set>
#include <vector>

#include "engine/driver/ledger.hpp"
#include "engine/trainer.hpp"
#include "storage/checkpoints.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// States under `running` belong to trials that are not done; states under `finished` are what a trial's value was
/// measured on: of the best `keep` COMPLETE trials and, with metric.select best, of trials that still run.
/// Files are written before the commit that counts on them and removed after the commit that makes them needless, so
/// that a crash in between leaves a file too many, never one too few.
class Keeper {
 public:
  Keeper(storage::Checkpoints& running, storage::Checkpoints& finished, const StudyConfig& config);

  /// Learns what lies on disk and removes what no trial of the ledger needs.
  void begin(Ledger& ledger);

  /// Writes the state of a trial after `entry.trained` epochs, unless that is on disk already. `state` is the same as
  /// entry.state where the trial is in no slot.
  void save(Entry& entry, int number, const SlotState& state);
  /// Brings a trial that is in no slot as far as memory and disk allow: afterwards entry.state is there and `trained`
  /// says how far it goes, or `trained` is 0 and the trial has to start anew.
  void restore(Entry& entry, int number);

  /// A trial is COMPLETE: keeps `state` on disk if it is among the best.
  void keep(int number, double value, int epoch, const SlotState& state);
  /// A trial is done (after keep(), if it is COMPLETE): its running state goes with the next after_commit().
  void forget(int number);
  /// Removes what the commit has made needless.
  void after_commit();

  /// The weights that a finished trial's value was measured on; nullopt if they are not kept.
  [[nodiscard]] std::optional<SlotState> finished_state(int number);

 private:
  struct Kept {
    double value;
    int number;
  };
  [[nodiscard]] std::size_t rank(double value, int number) const;
  [[nodiscard]] bool is_kept(int number) const;

  storage::Checkpoints& running_;
  storage::Checkpoints& finished_;
  std::size_t most_;
  trials::Goal goal_;
  bool select_best_;
  std::vector<Kept> best_;   ///< Best first, at most `most_`.
  std::set<int> on_disk_;    ///< Numbers with files under `running`.
  std::set<int> needless_;   ///< Of `running`.
  std::set<int> surpassed_;  ///< Of `finished`.
};

}  // namespace hfta::engine
