#pragma once
/// The implementation of Driver. Private to the sources that are named below.

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/driver/array_scheduler.hpp"
#include "engine/driver/budget.hpp"
#include "engine/driver/checkpoint_manager.hpp"
#include "engine/driver/driver.hpp"
#include "engine/driver/left_arrays.hpp"
#include "engine/driver/queue.hpp"
#include "engine/driver/study_writer.hpp"
#include "engine/driver/trial_table.hpp"

namespace hfta::engine {

/// The phase and decision that the store has of a trial whose state is behind it, for when it has caught up.
struct Laggard {
  Phase phase = Phase::kReady;
  search::Decision decision = search::Decision::kContinue;
};

/// A device as the run sees it.
struct Device {
  std::optional<std::vector<SlotReport>> reports;  ///< Reports of the round that has just ended; nullopt: it was paused
  std::optional<double> saved;                     ///< Time at which its states were written last in this run
  double pause_at = 0;                             ///< Time at which the epoch at hand is interrupted to write them
  bool failed = false;
  bool ready = false;                ///< Its array is filled, and is about to be started
  bool idle = false;                 ///< There was nothing to do for it when it was last asked
  std::atomic<bool> changes{false};  ///< The epoch at hand is interrupted to go on with more or fewer threads
  double change_took = 0;            ///< Seconds of the job that has just ended in which its array's threads changed
  double change_cost = 0;            ///< `change_took` of the last job in which threads changed
  double changes_took = 0;           ///< Sum of `change_took` over all jobs of this run
  bool borrows = true;               ///< False: memory ran out while it borrowed
  bool told = false;                 ///< The user was told that it borrows
};

struct Driver::Impl {
  Impl(const StudyConfig& study_config, const DriverDependencies& all, const storage::StudyRecord& study);
  ~Impl();

  // driver.cpp: the run as a whole
  Outcome run();
  void go_on();
  void recall();
  void reopen_arrays();
  bool draw(int most, std::optional<int> like = std::nullopt);
  /// Whether the trial has all its parameters; one that was enqueued with others than the study's, and failed, has not.
  [[nodiscard]] bool is_whole(int draw) { return trials::is_whole(config.space, table.trial(draw).params); }
  /// Whether nothing more is to be started.
  [[nodiscard]] bool halted() const { return dependencies.stop.load() != 0 || has_ended.load(); }
  void see_whether_it_ends();
  [[nodiscard]] double spent() const { return spent_before + dependencies.clock.seconds() - began; }
  bool trim_to_budget(OpenArray& array, std::size_t device);
  /// Whether the trial is a repetition of a configuration that another program asked for and that cannot be tried.
  [[nodiscard]] bool is_hopeless(int draw) {
    const trials::Trial& first = table.trial(table.repetitions().first_of(draw));
    return first.enqueued && first.state == trials::State::kFail && first.epochs.empty();
  }
  [[nodiscard]] bool any_busy() const;
  void take(const DeviceWorkers::Ended& ended);
  void recover(std::size_t device, const std::exception_ptr& error);
  void recover_if_failed(std::size_t device);
  void end();
  // entering.cpp: trials that come into the store, drawn here or enqueued by another program
  bool enter(int draw);
  bool try_to_enter(int draw);
  bool write_results();
  void enter_ahead();
  void give_up(int draw, const std::string& reason);
  void take_enqueued();
  bool take(const storage::EnqueuedTrial& asked);
  bool end_configuration();
  [[nodiscard]] bool can_train() const;
  // catching_up.cpp: a study of a method that learns goes on from where it stood
  bool begin_catching_up();
  void end_catching_up();
  bool catch_up(OpenArray& array, int slot);
  [[nodiscard]] bool catching_up() const { return catches_up; }
  // starting.cpp: devices that are to train
  void launch();
  bool with_idle_devices(const std::function<void(std::size_t device)>& act);
  void prepare(std::size_t device);
  void start_ready();
  [[nodiscard]] std::vector<int> lent_to_devices();
  void start(std::size_t device, int lent);
  void tell_of_lending(std::size_t device, int lent);
  // rounds.cpp: what an epoch brought
  void end_round(std::size_t device, double seconds);
  void end_untold_round(OpenArray& array, const std::vector<SlotReport>& reports);
  void record(OpenArray& array, const SlotReport& report);
  void act(OpenArray& array, int slot);
  /// `array`: the one whose round has ended, in whose slots trials that pause still sit; null: there is none.
  void act_on(const std::vector<search::Verdict>& verdicts, OpenArray* array);
  void act_on_paused(const search::Verdict& verdict);
  void finish(int draw, trials::State state, const std::string& reason);
  void flush_batch();
  [[nodiscard]] Status status();
  // copying.cpp: trials that go on from a copy of another
  /// Returns the draws of copies that are in no slot now.
  std::vector<int> copy_trials(const std::vector<search::Verdict>& verdicts, OpenArray* array);
  [[nodiscard]] HeldState paused_state(int draw, OpenArray* array);
  void copy(int draw, const search::CopyOf& copy, const HeldState& state, OpenArray* array);
  // testing.cpp: test metrics of the best trials
  void test_best();
  [[nodiscard]] bool test(const trials::Trial& best);
  [[nodiscard]] std::map<std::string, double> test_metrics(const trials::Trial& best, const SlotState& state);
  // saving.cpp: states that go to disk
  void save(const std::vector<std::size_t>& those);
  void save_if_due(std::size_t device);
  [[nodiscard]] double save_interval() const;
  void spill();

  const StudyConfig& config;
  RunClock clock;                   ///< A jump of the wall clock must not become a trial's duration.
  DriverDependencies dependencies;  ///< The dependencies, with `clock` as their clock
  WriteBatch batch;                 ///< What has happened since the last flush_batch()
  StudyWriter writer;
  TrialTable table;
  ReadyQueue queue;
  CheckpointManager checkpoints;
  ArrayScheduler array_scheduler;
  std::vector<Device> devices;
  std::vector<LeftArray> left;                   ///< Arrays that an earlier run left, not yet reopened
  bool catches_up = false;                       ///< Only `laggards` train, and what they do is in the store already
  std::map<int, Laggard> laggards;               ///< Trials whose state is behind the store, by draw
  std::vector<storage::EnqueuedTrial> enqueued;  ///< Trials that wait in the store for this run to take them
  std::map<int, std::string> failures;           ///< Reasons by draw, for the round at hand
  RateMeter rate;
  int first_round, round, told_round;
  double began;
  double ask_store_at = 0;  ///< Time at which a store that was locked is asked for trials' numbers again
  double take_seconds = 0;  ///< Seconds that taking the states out of arrays last took
  std::atomic<bool> aborting{false};
  double spent_before;                 ///< Seconds of earlier runs
  std::string ended_by;                ///< The budget or target that ended the study
  std::atomic<bool> has_ended{false};  ///< `ended_by` is set, or is about to be
};

}  // namespace hfta::engine
