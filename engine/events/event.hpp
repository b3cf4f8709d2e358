#pragma once
/// The events of a study, as data. The content of an event is durable before the event is sent.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

/// A run of the study begins. The first event of every run.
struct RunStarted {
  std::string study, storage;  ///< storage: the store's file.
  trials::Objectives objectives = {{}};
  std::vector<std::string> devices;
  bool resumed = false;  ///< The run resumes a study that the store has.
};

/// A trial is in a slot, and has no epoch yet.
struct TrialStarted {
  int trial = 0;  ///< Its number, as everywhere below.
  trials::Params params;
  int array = 0, slot = 0;
};

/// A trial has trained an epoch that no run has told of before.
struct EpochEnded {
  int trial = 0, epoch = 0;               ///< epoch: 1-based.
  std::map<std::string, double> metrics;  ///< "train_loss", "val_accuracy".
  double value = 0;                       ///< The first objective's metric; NaN where the trial diverged.
  int array = 0, slot = 0;
};

/// After its `epoch`th epoch a trial continues from a copy of another, with these parameters.
struct TrialCopied {
  int trial = 0, epoch = 0, source = 0;
  trials::Params params;
};

/// A trial has ended as COMPLETE, PRUNED or FAIL.
struct TrialEnded {
  int trial = 0;
  trials::State state = trials::State::kComplete;
  std::vector<double> values;  ///< Trial::values.
  std::string reason;          ///< Why the trial failed.
};

/// An array has been opened, or has another width or way to run.
struct ArrayChanged {
  int array = 0;
  std::string device, partition;  ///< partition: "hidden=64"; "" for all trials.
  int width = 0, chunk = 0, threads = 0;
};

/// The test metrics of the best trial, when the study is finished; with several objectives, of a trial of the front.
struct Tested {
  int trial = 0;
  std::map<std::string, double> metrics;
};

/// Something that a person should know, one line.
struct Note {
  std::string text;
};

/// An open array of slots.
struct ArrayStatus {
  std::string device, partition;
  int width = 0, occupied = 0;
};

/// The best trial so far, which may not be COMPLETE yet.
struct BestSoFar {
  int number = 0, epoch = 0;
  double value = 0;
  trials::Params params;
};

/// A COMPLETE trial after its last epoch; nullopt for nullptr.
[[nodiscard]] std::optional<BestSoFar> best_complete(const trials::Trial* best);

/// The numbers of `trials`.
[[nodiscard]] std::vector<int> numbers_of(const std::vector<const trials::Trial*>& trials);

/// The study after a round, when the slots that it emptied were filled again.
struct Status {
  std::string study;
  trials::Objectives objectives = {{}};
  int round = 0;               ///< Rounds of the study so far.
  std::optional<int> planned;  ///< Trials in all; unset: no limit.
  int complete = 0, pruned = 0, failed = 0;
  int running = 0;                          ///< Trials in a slot.
  int waiting = 0;                          ///< Trials that are drawn or paused, in no slot.
  std::int64_t epochs = 0;                  ///< Trial-epochs recorded, all runs together.
  std::optional<std::int64_t> epochs_left;  ///< Trial-epochs to come if no trial fails; unset: no limit.
  double rate = 0;                          ///< Trial-epochs per second of late; 0: unknown.
  double seconds = 0;                       ///< Seconds since this run began.
  std::optional<BestSoFar> best;
  std::optional<std::vector<int>> front;  ///< With several objectives, in place of `best`: the Pareto front's trials.
  std::vector<ArrayStatus> arrays;
};

/// The run ends. The last event of every run that is not killed.
struct RunEnded {
  bool finished = false;  ///< No trial is left; otherwise the run was stopped, and the study can go on.
  std::optional<BestSoFar> best;
  std::optional<std::vector<int>> front = std::nullopt;  ///< See Status::front.
};

using Event = std::variant<RunStarted, TrialStarted, EpochEnded, TrialCopied, TrialEnded, ArrayChanged, Tested, Note,
                           Status, RunEnded>;

/// Receives events in the order in which they happened.
class EventSink {
 public:
  virtual ~EventSink() = default;
  /// Called by one thread at a time.
  virtual void take(const Event& event) = 0;
};

/// One line of JSON, without its line break: {"event": "trial_ended", ...}; the schema is in docs/events.md. Numbers
/// that JSON does not have (NaN, infinities) are null.
[[nodiscard]] std::string event_json(const Event& event);

}  // namespace hfta::engine
