#pragma once
/// The contents of a study store, as plain values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::storage {

/// The progress of a study over all its runs.
struct Progress {
  double seconds = 0;    ///< Time that its runs took, all together, as far as they wrote it.
  std::string ended_by;  ///< What ended it before all of its trials were done: "its budget of 100 trial-epochs".
};

/// A study as a whole.
struct StudyRecord {
  std::string name;
  trials::Objectives objectives = {{}};
  trials::Space space;      ///< Exact distributions, no conditions; Optuna's tables get the nearest that Optuna has.
  std::string config;       ///< Snapshot of the config's text, as it was read.
  std::string config_json;  ///< The config, normalised; an edited config is compared with it.
  std::vector<int> run_caps;
  Progress progress = {};  ///< Written by Store::commit() alone.
};

/// A line of `hfta-tune studies`.
struct StudySummary {
  std::string name;
  trials::Objectives objectives = {{}};
  std::map<std::string, int> counts;  ///< Trials by Optuna's state names; only states that occur.
  std::optional<double> best;         ///< Best value of COMPLETE, feasible trials; unset for several objectives.
  std::optional<trials::UtcTime> last_change;
};

/// A trial to be added.
struct NewTrial {
  trials::Params params;
  std::optional<int> seen_rounds = std::nullopt;  ///< Trial::seen_rounds.
};

/// A trial that another program has added, as by Optuna's enqueue_trial, and that no run has begun: WAITING.
struct EnqueuedTrial {
  int number = 0;
  trials::Params params;  ///< The parameters that are given; the sampler chooses the rest.
};

/// An array of slots as it was opened or changed.
struct ArrayRecord {
  int array = 0;                  ///< 0-based count of arrays of the study.
  std::string device, partition;  ///< partition: the shape-changing parameters, "hidden=64".
  int width = 0, chunk = 0, threads = 0;
  std::string choices_json;  ///< Lowering per op, and the source of each (measured, remembered, not measured).
};

/// Slot `slot` of `array` trained `trial` in round `round` (study-wide count), bringing it to `epoch`.
struct OccupancyRecord {
  int array = 0, round = 0, slot = 0, trial = 0, epoch = 0;
};

/// Time and width of a round.
struct RoundRecord {
  int round = 0, array = 0, width = 0, occupied = 0;
  double seconds = 0;  ///< Training and evaluation.
};

/// The state of a trial changed.
struct StateChange {
  int trial = 0;  ///< Its number.
  trials::State state = trials::State::kRunning;
  std::vector<double> values;  ///< Trial::values.
  std::string reason;
  trials::UtcTime when;
  std::optional<int> round = std::nullopt;  ///< Trial::ended_round; unset: not written.
};

/// A trial continues from a copy of another. Only parameters with the names of the trial's own are kept.
struct CopyRecord {
  int trial = 0;  ///< Its number.
  trials::Copy copy;
};

/// Everything that one round writes.
struct Changes {
  struct Epoch {
    int trial = 0;
    trials::EpochRecord record;
    /// The study's metric: becomes Optuna's intermediate value at step `epoch`. Unset where there are several: Optuna
    /// has none for them.
    std::optional<double> value;
  };
  std::vector<std::pair<int, trials::UtcTime>> started;  ///< Trials admitted to a slot for the first time.
  std::vector<Epoch> epochs;                             ///< Written again (resume): replaces the row.
  std::vector<CopyRecord> copies;  ///< Written again: replaces the copy of that trial after that epoch.
  std::vector<StateChange> states;
  std::vector<ArrayRecord> arrays;  ///< New or changed (resized).
  std::vector<OccupancyRecord> occupancy;
  std::vector<RoundRecord> rounds;
  std::map<int, std::map<std::string, double>> test_metrics;  ///< Test metrics by trial number.
  std::optional<Progress> progress;                           ///< Replaces the study's.
  [[nodiscard]] bool empty() const;
};

/// The right of one process to run a study.
struct Lease {
  std::int64_t fence = 0;  ///< Counts from 1; raised by one whenever a process takes the study.
  std::string token;       ///< Different for every lease, also from those of a deleted study of that name.
  std::string holder;      ///< The holder, for messages: "process 4711 on host adele".
  bool operator==(const Lease&) const = default;
};

}  // namespace hfta::storage
