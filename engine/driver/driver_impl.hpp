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

#include "engine/driver/arrays/left_arrays.hpp"
#include "engine/driver/devices/thread_changes.hpp"
#include "engine/driver/driver.hpp"
#include "engine/driver/packing/array_scheduler.hpp"
#include "engine/driver/run_budget.hpp"
#include "engine/driver/states/catching_up.hpp"
#include "engine/driver/states/checkpoint_manager.hpp"
#include "engine/driver/states/state_saver.hpp"
#include "engine/driver/trials/numbering.hpp"
#include "engine/driver/trials/queue.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "engine/driver/writing/study_writer.hpp"
#include "search/completion.hpp"

namespace hfta::engine {

/// A device as the run sees it.
struct Device {
  std::optional<std::vector<SlotReport>> reports;  ///< Reports of the round that has just ended; nullopt: it was paused
  double pause_at = 0;  ///< Time at which the epoch at hand is interrupted to write its states
  bool failed = false;
  bool ready = false;                ///< Its array is filled, and is about to be started
  bool idle = false;                 ///< There was nothing to do for it when it was last asked
  std::atomic<bool> changes{false};  ///< The epoch at hand is interrupted to go on with more or fewer threads
  double change_took = 0;            ///< Seconds of the job that has just ended in which its array's threads changed
  bool told = false;                 ///< The user was told that it borrows
};

struct Driver::Impl {
  Impl(const StudyConfig& study_config, const DriverDependencies& all, const storage::StudyRecord& study);
  ~Impl();

  // driver.cpp: the run as a whole
  Outcome run();
  bool draw(int most, std::optional<int> like = std::nullopt);
  /// Whether the trial has all its parameters; one that was enqueued with others than the study's, and failed, has not.
  [[nodiscard]] bool is_whole(int draw) { return trials::is_whole(config.space, table.trial(draw).params); }
  /// Whether nothing more is to be started.
  [[nodiscard]] bool halted() const { return dependencies.stop.load() != 0 || budget.ended(); }
  bool trim_to_budget(OpenArray& array, std::size_t device);
  /// How many trials train side by side: the slots of all devices, at the width of arrays for the study's first trial.
  [[nodiscard]] int slots();
  /// Whether the trial is a repetition of a configuration that another program asked for and that cannot be tried.
  [[nodiscard]] bool is_hopeless(int draw) {
    const trials::Trial& first = table.trial(table.repetitions().first_of(draw));
    return first.enqueued && first.state == trials::State::kFail && first.epochs.empty();
  }
  [[nodiscard]] bool any_busy() const;
  void take(const DeviceWorkers::Ended& ended);
  void recover(std::size_t device, const std::exception_ptr& error);
  void recover_if_failed(std::size_t device);
  void test_best();
  void end();
  // resuming.cpp: the study as the store and an earlier run left it
  void go_on();
  void recall();
  void end_catching_up();
  void reopen_arrays();
  // entering.cpp: trials that come into the store, drawn here or enqueued by another program
  void give_up(int draw, const std::string& reason);
  void take_enqueued();
  [[nodiscard]] search::Completion completed(const storage::EnqueuedTrial& asked) const;
  bool take(const storage::EnqueuedTrial& asked);
  bool end_configuration();
  [[nodiscard]] bool can_train() const;
  // starting.cpp: devices that are to train
  void launch();
  [[nodiscard]] bool act_on_idle_devices(const std::function<void(std::size_t device)>& act);
  void prepare(std::size_t device);
  void start_ready();
  [[nodiscard]] std::vector<int> lent_to_devices();
  void start(std::size_t device, int lent);
  void note_starts(const OpenArray& array);
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

  const StudyConfig& config;
  RunClock clock;                   ///< A jump of the wall clock must not become a trial's duration.
  DriverDependencies dependencies;  ///< The dependencies, with `clock` as their clock
  WriteBatch batch;                 ///< What has happened since the last flush_batch()
  StudyWriter writer;
  TrialTable table;
  ReadyQueue queue;
  CheckpointManager checkpoints;
  Numbering numbering;
  ArrayScheduler array_scheduler;
  StateSaver saver;
  CatchingUp catching_up;
  std::vector<Device> devices;
  ThreadChanges thread_changes;
  std::vector<LeftArray> left;                   ///< Arrays that an earlier run left, not yet reopened
  std::vector<storage::EnqueuedTrial> enqueued;  ///< Trials that wait in the store for this run to take them
  std::map<int, std::string> failures;           ///< Reasons by draw, for the round at hand
  RateMeter rate;
  int first_round, round, told_round;
  RunBudget budget;
  std::atomic<bool> aborting{false};
};

}  // namespace hfta::engine
