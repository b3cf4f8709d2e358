#pragma once
/// A study in a folder of its own, run with fake trainers as often as a test likes.

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/temporary_folder.hpp"
#include "engine/config.hpp"
#include "engine/driver/driver.hpp"
#include "fake_trainer.hpp"
#include "storage/memory/memory_store.hpp"

namespace hfta::engine::testing {

/// A folder of a test's own.
struct StudyFolder : TemporaryFolder {
  StudyFolder() : TemporaryFolder("hfta-driver") {}
};

/// One of `values`.
[[nodiscard]] trials::Parameter choice(const std::string& name, std::vector<trials::ParamValue> values);
/// A distribution between two ends.
[[nodiscard]] trials::Parameter range(const std::string& name, trials::DistributionKind kind, double min, double max);

/// lr, wd, dropout, hidden (which changes shapes), as in configs/digits.yaml.
[[nodiscard]] trials::Space digits_space();
/// Hyperband 1..27, eta 3, 98 trials, over that space.
[[nodiscard]] StudyConfig digits_config();

/// Random search over it, five epochs a trial.
[[nodiscard]] StudyConfig random_config(int run_cap);
/// The same by `method`, with two objectives: high val_accuracy, few parameters (World::counts_parameters).
[[nodiscard]] StudyConfig objectives_config(const std::string& method, int run_cap);

/// Remembers all events.
class ProgressNotes final : public EventSink {
 public:
  void take(const Event& event) override {
    events.push_back(event);
    if (const auto* status = std::get_if<Status>(&event)) {
      statuses.push_back(*status);
      if (on_round) on_round(*status);
    } else if (const auto* note = std::get_if<Note>(&event)) {
      notes.push_back(note->text);
      if (on_note) on_note(note->text);
    }
  }
  std::vector<Event> events;
  std::vector<Status> statuses;
  std::vector<std::string> notes;
  std::function<void(const Status&)> on_round;
  std::function<void(const std::string&)> on_note;
};

/// What keeps a study: memory, unless a test is about files, SQLite or other programs.
enum class Kept { kInMemory, kInFile };

/// The study's store and files, and what runs it.
class StudyFixture {
 public:
  explicit StudyFixture(StudyConfig study_config, Kept kept = Kept::kInMemory);

  /// One run: makes the study in the store the first time, goes on with it later.
  Outcome run(int devices = 1);
  /// Runs until the study is finished, stopping after every `rounds` rounds. Returns the number of runs.
  int run_in_pieces(int rounds, int devices, bool keep_checkpoints);
  /// From the first device's `at`-th call of that name on, it throws at whatever it is asked, as a GPU does; the calls
  /// are counted in `calls`, which must outlive the runs.
  void fail_at(const std::string& call, int at, int& calls);
  /// Everything that a study comes to, as text: compared between runs.
  [[nodiscard]] std::string table();
  [[nodiscard]] std::vector<trials::Trial> trials();
  [[nodiscard]] int count(trials::State state);
  /// A connection.
  std::unique_ptr<storage::Store> open();

  StudyFolder folder;
  StudyConfig config;  ///< Its `storage` is the file, where the study is kept in one.
  storage::MemoryStudies studies;
  World world;
  ProgressNotes recorder;
  std::atomic<int> stop{0};
  SystemFiles files;
  std::filesystem::path checkpoints;  ///< Its folder.
  std::size_t state_memory = std::size_t{1} << 30;
  bool record_beside = true;
  Clock* clock = nullptr;           ///< null: the machine's.
  std::string faults;               ///< See Faults; of the next runs.
  std::vector<std::string> labels;  ///< Of the next runs' devices; empty: fake:0, fake:1, ...
  search::History prior;            ///< Trials of an earlier study, when the study is made.
};

/// What digits_config() comes to, one slot wide, never stopped.
[[nodiscard]] const std::string& reference_table();
/// Epochs recorded, of all trials.
[[nodiscard]] long total_epochs(const std::vector<trials::Trial>& all);

}  // namespace hfta::engine::testing
