/// What a write costs the disk must not grow with the study: pages are counted, so that no clock is asked.
#include <vector>

#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"
#include "tests/storage/sqlite/fault_vfs.hpp"

namespace hfta::storage::testing {
namespace {

using Mode = SqliteStore::Mode;

struct Pages {
  int read = 0, changed = 0;
};

/// A study of one parameter in which every trial has had an epoch.
void write_study(Store& store, int trials) {
  StudyRecord study = sample_study("s");
  study.space = {every_kind()[0]};
  store.create(study);
  const std::vector<NewTrial> added(static_cast<std::size_t>(trials), {{params_of(0)[0]}});
  Changes changes;
  for (const int number : store.add_trials("s", added, at(0))) {
    changes.epochs.push_back({number, {1, {{"val_accuracy", 0.5}}}, 0.5});
  }
  store.commit("s", changes);
}

/// What `work` looks at and writes in a study of so many trials; what the store had in memory is out of date.
template <typename Work>
Pages pages_of(int trials, Work work) {
  const TempFolder folder;
  FaultyDisk disk;
  SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
  write_study(store, trials);
  SqliteStore other = SqliteStore::open(folder / "s.db", Mode::kReadWrite);
  Changes change;
  change.epochs = {{0, {2, {{"val_accuracy", 0.6}}}, 0.6}};
  other.commit("s", change);
  disk.observe(nullptr);
  work(store);
  return {disk.reads(), disk.changes()};
}

// Trees become deeper, by a page for every hundredfold or so. A query that counts or walks the trials reads dozens.
constexpr int kDeeper = 12;

TEST_CASE("store: trials are added to a large study at the cost of a small one", "[growth]") {
  const auto add = [](Store& store) { (void)store.add_trials("s", {{{params_of(0)[0]}}}, at(1)); };
  const Pages small = pages_of(100, add), large = pages_of(30'000, add);
  CHECK(large.read <= small.read + kDeeper);
  CHECK(large.changed <= small.changed + kDeeper);
}

TEST_CASE("store: a round is committed to a large study at the cost of a small one", "[growth]") {
  const auto commit = [](Store& store) {
    Changes changes;
    changes.epochs = {{50, {2, {{"val_accuracy", 0.7}}}, 0.7}};
    changes.states = {{50, trials::State::kComplete, {0.7}, "", at(2)}};
    changes.rounds = {{7, 0, 1, 1, 0.5}};
    changes.occupancy = {{0, 7, 0, 50, 2}};
    store.commit("s", changes);
  };
  const Pages small = pages_of(100, commit), large = pages_of(30'000, commit);
  CHECK(large.read <= small.read + kDeeper);
  CHECK(large.changed <= small.changed + kDeeper);
}

TEST_CASE("store: numbers follow those that other programs have given", "[growth]") {
  const TempFolder folder;
  SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
  write_study(store, 3);
  Connection optuna(folder / "s.db", true, false);
  optuna.execute("INSERT INTO trials (number, study_id, state) VALUES (3, 1, 'COMPLETE')");
  CHECK(store.add_trials("s", {{{params_of(0)[0]}}}, at(1)) == std::vector<int>{4});
  optuna.execute("INSERT INTO trials (number, study_id, state) VALUES (NULL, 1, 'COMPLETE')");  // as Optuna 2 did
  CHECK(store.add_trials("s", {{{params_of(0)[0]}}}, at(1)) == std::vector<int>{6});
}

}  // namespace
}  // namespace hfta::storage::testing
