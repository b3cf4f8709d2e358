/// A bit that the disk turned is seen: no number of a report is another one without a word.
#include <optional>
#include <sstream>
#include <vector>

#include "base/random.hpp"
#include "base/text.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;
using Damage = Store::Damage;

/// Everything that a report shows, as text; damaged trials by their number alone.
std::string shown(Store& store) {
  std::string text;
  const auto record = store.find("s");
  if (!record) return "no study";
  for (const trials::Objective& one : record->objectives) {
    text += one.metric + (one.goal == trials::Goal::kMaximize ? " up " : " down ");
  }
  text += record->config_json;
  for (const trials::Trial& t : store.trials("s", Damage::kMark)) {
    text += "\n" + std::to_string(t.number);
    if (t.reason.starts_with("damaged")) {
      text += " damaged";
      continue;
    }
    text += std::string(trials::name_of(t.state)) + (t.value() ? shortest(*t.value()) : "-") + t.reason;
    for (const auto& [name, value] : t.params) text += " " + name + "=" + trials::to_text(value);
    for (const auto& epoch : t.epochs) {
      for (const auto& [name, value] : epoch.metrics) {
        text += " " + std::to_string(epoch.epoch) + name + "=" + shortest(value);
      }
    }
    for (const auto& [name, value] : t.test_metrics) text += " " + name + "=" + shortest(value);
    if (t.started) text += " " + std::to_string(t.started->time_since_epoch().count());
    if (t.completed) text += " " + std::to_string(t.completed->time_since_epoch().count());
  }
  for (const RoundRecord& r : store.rounds("s")) {
    text += "\n" + std::to_string(r.round) + " " + std::to_string(r.width) + " " + std::to_string(r.occupied) + " " +
            shortest(r.seconds);
  }
  for (const OccupancyRecord& o : store.occupancy("s")) {
    text += "\n" + std::to_string(o.round) + " " + std::to_string(o.slot) + " " + std::to_string(o.trial) + " " +
            std::to_string(o.epoch);
  }
  for (const ArrayRecord& a : store.arrays("s")) text += "\n" + a.device + std::to_string(a.chunk) + a.choices_json;
  return text;
}

std::optional<std::string> report(const fs::path& file) {
  try {
    SqliteStore store = SqliteStore::open(file, Mode::kReadOnly);
    return shown(store);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Line by line: the same, or marked.
bool is_same_or_marked(const std::string& found, const std::string& wanted) {
  const auto a = lines_of(found), b = lines_of(wanted);
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i].find(" damaged") == std::string::npos) return false;
  }
  return true;
}

TEST_CASE("digest: no bit can turn without a word wherever a number that is shown depends on it", "[digest]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  {
    SqliteStore store = SqliteStore::open(file, Mode::kCreate);
    write_sample(store, "s");
  }
  const std::string bytes = read_file(file);
  const std::string whole = *report(file);
  CHECK(whole.find("damaged") == std::string::npos);
  const fs::path flipped = folder / "flipped.db";
  int refused = 0, marked = 0;
  constexpr int kFlips = 1000;
  for (int flip = 0; flip < kFlips; ++flip) {
    CountedRandom random(1, Stream::kSimulation, static_cast<std::uint64_t>(flip), 0);
    const std::size_t bit = random.below(bytes.size() * 8);
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    write_file(flipped, damaged);
    const std::optional<std::string> found = report(flipped);
    refused += found ? 0 : 1;
    if (!found || *found == whole) continue;
    ++marked;
    INFO("bit " << bit << ", that is byte " << bit / 8 << " of page " << 1 + bit / 8 / 4096);
    INFO(*found);
    CHECK(is_same_or_marked(*found, whole));
  }
  CHECK(refused > 20);
  CHECK(marked > 10);
}

struct Edit {
  const char* sql;
  int trial;  ///< Whose rows it changes.
};

TEST_CASE("digest: a run refuses a store in which a trial is another, and names it", "[digest]") {
  const Edit edits[] = {
      {"UPDATE hfta_epoch_metrics SET value = value + 1e-9 WHERE trial_id = 1 AND name = 'train_loss' AND epoch = 2",
       0},
      {"DELETE FROM hfta_epoch_metrics WHERE trial_id = 4 AND epoch = 2", 3},
      {"INSERT INTO hfta_epoch_metrics VALUES (4, 3, 'val_accuracy', 1, 'FINITE')", 3},
      {"UPDATE trial_values SET value = 0.99 WHERE trial_id = 2", 1},
      {"UPDATE trials SET state = 'COMPLETE' WHERE trial_id = 2", 1},
      {"UPDATE trial_params SET param_value = 0.25 WHERE trial_id = 6 AND param_name = 'uniform'", 5},
      {"UPDATE hfta_test_metrics SET value = 0.9 WHERE name = 'test_accuracy'", 5},
      {"UPDATE hfta_trials SET reason = '' WHERE trial_id = 3", 2},
      {"UPDATE hfta_trials SET exact_json = NULL WHERE trial_id = 1", 0},
      {"DELETE FROM hfta_trials WHERE trial_id = 1", 0},
  };
  for (const Edit& edit : edits) {
    INFO(edit.sql);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    SqliteStore store = SqliteStore::open(file, Mode::kCreate);
    write_sample(store, "s");
    Connection(file, true, false).execute(edit.sql);
    check_refused(file, "trial " + std::to_string(edit.trial) + ": damaged", [&] { (void)store.trials("s"); });
    const auto marked = store.trials("s", Damage::kMark);
    for (const trials::Trial& trial : marked) {
      CHECK(trial.reason.starts_with("damaged") == (trial.number == edit.trial));
    }
    CHECK_FALSE(marked[static_cast<std::size_t>(edit.trial)].value());
  }
}

TEST_CASE("digest: of several objectives each direction, name and value is guarded", "[digest]") {
  const Edit edits[] = {
      {"UPDATE trial_values SET value = value + 1 WHERE trial_id = 2 AND objective = 1", 1},
      {"UPDATE trial_values SET value = value + 1 WHERE trial_id = 2 AND objective = 0", 1},
      {"UPDATE trial_values SET objective = 2 WHERE trial_id = 5 AND objective = 1", 4},
      {"DELETE FROM trial_values WHERE trial_id = 1 AND objective = 1", 0},
      {"INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (3, 2, 1, 'FINITE')", 2},
  };
  const TempFolder folder;
  const auto edited = [&](const char* sql) {
    fs::remove(folder / "s.db");
    SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
    write_front(store, "s");
    Connection(folder / "s.db", true, false).execute(sql);
    return store;
  };
  for (const Edit& edit : edits) {
    INFO(edit.sql);
    SqliteStore store = edited(edit.sql);
    check_refused(folder / "s.db", "trial " + std::to_string(edit.trial) + ": damaged",
                  [&] { (void)store.trials("s"); });
  }
  const char* studies[] = {"UPDATE study_directions SET direction = 'MAXIMIZE' WHERE objective = 1",
                           "DELETE FROM study_directions WHERE objective = 1",
                           "UPDATE study_directions SET objective = 2 WHERE objective = 0",
                           "UPDATE hfta_studies SET metric = replace(metric, 'parameters', 'size')"};
  for (const char* sql : studies) {
    INFO(sql);
    SqliteStore store = edited(sql);
    check_refused(folder / "s.db", "its config: damaged", [&] { (void)store.find("s"); });
  }
}

TEST_CASE("digest: the study, its arrays and its rounds are guarded too", "[digest]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  write_sample(store, "s");
  Connection other(file, true, false);
  other.execute("UPDATE hfta_arrays SET chunk = chunk + 1 WHERE array = 1");
  check_refused(file, "array 1: damaged", [&] { (void)store.arrays("s"); });
  other.execute("UPDATE hfta_occupancy SET epoch = 7 WHERE round = 1 AND slot = 0");
  check_refused(file, "round 1 of array 0: damaged", [&] { (void)store.rounds("s"); });
  CHECK_NOTHROW(store.find("s"));
  other.execute("UPDATE hfta_studies SET config = replace(config, 'random', 'grid')");
  check_refused(file, "its config: damaged", [&] { (void)store.find("s"); });
}

TEST_CASE("digest: what other programs may do with a study is no damage", "[digest]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  write_sample(store, "s");
  Connection optuna(file, true, false);
  // Attributes; a trial of Optuna's own; one of ours that Optuna ends; a trial that is deleted.
  optuna.execute("INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (1, 'seen', 'true')");
  optuna.execute("INSERT INTO trials (number, study_id, state) VALUES (6, 1, 'COMPLETE')");
  optuna.execute("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (7, 0, 0.5, 'FINITE')");
  optuna.execute("UPDATE trials SET state = 'FAIL', datetime_complete = '2026-11-21 09:00:00.000000' WHERE number = 3");
  CHECK(store.trials("s").size() == 7);
  CHECK((store.trials("s")[3].state == trials::State::kFail));
  optuna.execute("PRAGMA foreign_keys=OFF; DELETE FROM trials WHERE number = 5");
  CHECK(store.trials("s").size() == 6);
  CHECK(store.rounds("s").size() == 2);
}

TEST_CASE("digest: a trial that goes on after an epoch was written twice is whole", "[digest]") {
  const TempFolder folder;
  SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
  write_sample(store, "s");
  Changes again;
  again.started = {{3, at(50)}};
  again.epochs = {{3, {2, {{"train_loss", 0.25}, {"val_accuracy", 0.0}, {"new", -0.0}}}, 0.5},
                  {3, {3, {{"train_loss", 0.5}}}, std::nullopt}};
  again.states = {{3, trials::State::kPruned, {0.5}, "", at(60)}};
  store.commit("s", again);
  store.commit("s", again);
  CHECK(store.trials("s")[3].epochs.size() == 3);
}

TEST_CASE("digest: what a draw had seen, and when its trial ended, is kept and guarded", "[digest]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  store.create(sample_study("s"));
  (void)store.add_trials("s", {{params_of(0), 7}, {params_of(1), 7}}, at(0));
  (void)store.add_trials("s", {{params_of(2)}}, at(1));
  Changes changes;
  changes.states = {{0, trials::State::kComplete, {0.5}, "", at(2), 11}, {2, trials::State::kFail, {}, "no", at(3)}};
  store.commit("s", changes);
  const std::vector<trials::Trial> trials = store.trials("s");
  CHECK(trials[0].seen_rounds == 7);
  CHECK(trials[1].seen_rounds == 7);
  CHECK(trials[2].seen_rounds == std::nullopt);
  CHECK(trials[0].ended_round == 11);
  CHECK(trials[1].ended_round == std::nullopt);
  CHECK(trials[2].ended_round == std::nullopt);
  const Edit edits[] = {
      {"UPDATE trial_system_attributes SET value_json = '8' WHERE \"key\" = 'hfta:seen_rounds' AND trial_id = 2", 1},
      {"DELETE FROM trial_system_attributes WHERE \"key\" = 'hfta:seen_rounds' AND trial_id = 1", 0},
      {"UPDATE trial_system_attributes SET value_json = '3' WHERE \"key\" = 'hfta:ended_round'", 0},
      {"INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (3, 'hfta:ended_round', '3')", 2},
  };
  for (const Edit& edit : edits) {
    INFO(edit.sql);
    fs::remove(folder / "copy.db");
    fs::copy_file(file, folder / "copy.db");
    SqliteStore copy = SqliteStore::open(folder / "copy.db", Mode::kReadWrite);
    Connection(folder / "copy.db", true, false).execute(edit.sql);
    check_refused(folder / "copy.db", "trial " + std::to_string(edit.trial) + ": damaged",
                  [&] { (void)copy.trials("s"); });
  }
  for (const char* text : {"'eight'", "'8.5'", "'99999999999'", "'[8]'", "''"}) {
    INFO(text);
    fs::remove(folder / "copy.db");
    fs::copy_file(file, folder / "copy.db");
    SqliteStore copy = SqliteStore::open(folder / "copy.db", Mode::kReadWrite);
    Connection(folder / "copy.db", true, false)
        .execute((std::string("UPDATE trial_system_attributes SET value_json = ") + text).c_str());
    check_refused(folder / "copy.db", "hfta:", [&] { (void)copy.trials("s"); });
  }
}

TEST_CASE("what a trial went on from a copy of is in the digests, also where it is written again") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  store.create(sample_study("s"));
  (void)store.add_trials("s", {{params_of(0)}, {params_of(1)}}, at(0));
  for (const int source : {0, 0}) {
    Changes changes;
    changes.copies = {{1, {4, source, params_of(2)}}};
    store.commit("s", changes);
    CHECK(store.trials("s")[1].copies.size() == 1);
  }
  const char* edits[] = {
      "UPDATE trial_system_attributes SET value_json = replace(value_json, '0', '1') WHERE \"key\" = 'hfta:copy:4'",
      "UPDATE trial_system_attributes SET \"key\" = 'hfta:copy:5' WHERE \"key\" = 'hfta:copy:4'",
      "DELETE FROM trial_system_attributes WHERE \"key\" = 'hfta:copy:4'"};
  for (const char* edit : edits) {
    INFO(edit);
    fs::remove(folder / "copy.db");
    fs::copy_file(file, folder / "copy.db");
    SqliteStore copy = SqliteStore::open(folder / "copy.db", Mode::kReadWrite);
    Connection(folder / "copy.db", true, false).execute(edit);
    check_refused(folder / "copy.db", "trial 1: damaged", [&] { (void)copy.trials("s"); });
  }
  const std::pair<const char*, const char*> hostile[] = {
      {"hfta:copy:4", "'[]'"},
      {"hfta:copy:4", "'{\"source\": 1e9, \"params\": {}}'"},
      {"hfta:copy:4", "'{\"source\": 0, \"params\": {\"uniform\": [1]}}'"},
      {"hfta:copy:4", "'{'"},
      {"hfta:copy:99999999999", "'{\"source\": 0, \"params\": {}}'"},
      {"hfta:copy:", "'{\"source\": 0, \"params\": {}}'"}};
  for (const auto& [key, value] : hostile) {
    INFO(key << " " << value);
    fs::remove(folder / "copy.db");
    fs::copy_file(file, folder / "copy.db");
    SqliteStore copy = SqliteStore::open(folder / "copy.db", Mode::kReadWrite);
    Connection(folder / "copy.db", true, false)
        .execute((std::string("UPDATE trial_system_attributes SET \"key\" = '") + key + "', value_json = " + value +
                  " WHERE \"key\" = 'hfta:copy:4'")
                     .c_str());
    check_refused(folder / "copy.db", "", [&] { (void)copy.trials("s"); });
  }
}

}  // namespace
}  // namespace hfta::storage::testing
