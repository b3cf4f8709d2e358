// Studies that are stopped, killed, short of memory or of devices come to the same as those that are not.

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/error.hpp"
#include "engine/driver/arrays/left_arrays.hpp"
#include "engine/driver/trials/trial_table.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;

TEST_CASE("a study comes to the same however often it is stopped, and nothing is trained twice") {
  const int rounds = GENERATE(1, 2, 5, 17);
  const int devices = GENERATE(1, 2);
  CAPTURE(rounds, devices);
  StudyFixture study(digits_config());
  study.config.width = 16;
  const int runs = study.run_in_pieces(rounds, devices, true);
  CHECK(runs > 2);
  CHECK(study.table() == reference_table());
  CHECK(study.world.trial_epochs == 714);
}

TEST_CASE("a study that was stopped goes on as wide as it was, so that even the last bits agree") {
  const bool hyperband = GENERATE(true, false);
  const int width = GENERATE(3, 16);
  CAPTURE(hyperband, width);
  StudyConfig config = hyperband ? digits_config() : random_config(70);
  config.width = width;
  StudyFixture whole(config);
  whole.world.width_matters = true;
  (void)whole.run();
  for (const int rounds : {1, 3, 7}) {
    CAPTURE(rounds);
    StudyFixture pieces(config);
    pieces.world.width_matters = true;
    (void)pieces.run_in_pieces(rounds, 1, true);
    CHECK(pieces.table() == whole.table());
    const auto a = whole.open()->occupancy("digits"), b = pieces.open()->occupancy("digits");
    REQUIRE(a.size() == b.size());
    const bool same = std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
      return std::tie(x.array, x.round, x.slot, x.trial, x.epoch) ==
             std::tie(y.array, y.round, y.slot, y.trial, y.epoch);
    });
    CHECK(same);
  }
}

TEST_CASE("a study goes on with fewer devices, and with narrower arrays, than it was begun with") {
  StudyFixture study(digits_config());
  study.config.width = 16;
  study.world.after_epochs = [&](int runs) {
    if (runs == 9) study.stop = SIGINT;
  };
  CHECK(study.run(3).stopped_by == SIGINT);
  study.stop = 0;
  study.world.after_epochs = nullptr;
  study.config.width = 5;
  CHECK(study.run(1).stopped_by == 0);
  CHECK(study.table() == reference_table());
  const auto rounds = study.open()->rounds("digits");
  CHECK(std::all_of(rounds.begin(), rounds.end(), [](const auto& r) { return r.round < 12 || r.width <= 5; }));
}

TEST_CASE("a study whose checkpoints are lost trains again from the start, and comes to the same") {
  const int rounds = GENERATE(28, 33, 41);
  CAPTURE(rounds);
  StudyFixture study(digits_config());
  study.config.width = 8;
  CHECK(study.run_in_pieces(rounds, 1, false) > 2);
  CHECK(study.table() == reference_table());
  CHECK(study.world.trial_epochs > 714);
}

TEST_CASE("a study comes to the same after the process died in the middle of a round") {
  const int at = GENERATE(1, 2, 10, 37, 60);
  const int devices = GENERATE(1, 3);
  CAPTURE(at, devices);
  StudyFixture study(digits_config());
  study.config.width = 8;
  study.world.after_epochs = [&](int runs) {
    if (runs == at) throw Error(ErrorKind::kInternal, "fake: the process died");
  };
  REQUIRE_THROWS_AS(study.run(devices), Error);
  study.world.after_epochs = nullptr;
  const Outcome outcome = study.run(devices);
  CHECK(outcome.stopped_by == 0);
  CHECK(study.table() == reference_table());
}

TEST_CASE("what progress tells of is in the store") {
  StudyFixture study(digits_config());
  study.config.width = 8;
  int checks = 0;
  study.recorder.on_round = [&](const Status& status) {
    if (++checks % 7 != 0) return;
    const auto all = study.trials();
    CHECK(total_epochs(all) >= status.epochs);
    for (const auto& trial : all) {
      if (trial.epochs.size() == 27) CHECK(trial.state == State::kComplete);
    }
  };
  (void)study.run();
  CHECK(checks > 21);
}

TEST_CASE("a stop ends the run, and the outcome says which signal it was") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  StudyFixture study(digits_config());
  study.world.after_epochs = [&](int runs) {
    if (runs == 3) study.stop = signal;
  };
  const Outcome outcome = study.run();
  CHECK(outcome.stopped_by == signal);
  CHECK(outcome.rounds == 3);
  CHECK(study.open()->rounds("digits").size() == 3);
  CHECK_FALSE(outcome.any_complete);
}

TEST_CASE("a stop before the first round creates no trial") {
  StudyFixture study(digits_config());
  study.stop = SIGINT;
  CHECK(study.run().stopped_by == SIGINT);
  CHECK(study.trials().empty());
}

TEST_CASE("weights that are lost leave the best trial without test metrics, and a note") {
  StudyFixture study(digits_config());
  study.record_beside = false;
  study.world.after_epochs = [&](int) { std::filesystem::remove_all(study.checkpoints / "finished"); };
  study.config.width = 1;
  // The last trial to complete is not the best one: its file is written after the best one's was removed.
  CHECK_NOTHROW(study.run());
  CHECK(study.recorder.notes.size() == 1);
  CHECK(study.world.tests == 0);
}

TEST_CASE("weights of the best finished trials are kept, and no other state") {
  const int keep = GENERATE(1, 3, 10, 50);
  const bool pieces = GENERATE(true, false);
  StudyFixture study(digits_config());
  study.config.keep = keep;
  pieces ? (void)study.run_in_pieces(6, 1, true) : (void)study.run();
  std::vector<trials::Trial> complete;
  for (const auto& trial : study.trials()) {
    if (trial.state == State::kComplete) complete.push_back(trial);
  }
  std::stable_sort(complete.begin(), complete.end(),
                   [](const auto& a, const auto& b) { return *a.value() > *b.value(); });
  std::set<int> expected;
  for (std::size_t i = 0; i < complete.size() && static_cast<int>(i) < keep; ++i) expected.insert(complete[i].number);
  storage::Checkpoints finished(study.files, study.checkpoints / "finished");
  storage::Checkpoints running(study.files, study.checkpoints / "running");
  const std::vector<int> kept = finished.trials();
  CHECK(std::set<int>(kept.begin(), kept.end()) == expected);
  for (const int number : kept) CHECK(finished.load(number)->epoch == 27);
  CHECK(running.trials().empty());
}

TEST_CASE("a damaged checkpoint is trained again, to the same end") {
  StudyFixture study(digits_config());
  study.config.width = 8;
  study.world.after_epochs = [&](int runs) {
    if (runs == 30) study.stop = SIGINT;
  };
  (void)study.run();
  study.stop = 0;
  study.world.after_epochs = nullptr;
  int damaged = 0;
  for (const auto& file : std::filesystem::directory_iterator(study.checkpoints / "running")) {
    std::vector<std::byte> bytes = study.files.read(file.path(), 1 << 20);
    bytes.at(bytes.size() / 2) ^= std::byte{1};
    study.files.write_atomically(file.path(), bytes);
    ++damaged;
  }
  REQUIRE(damaged > 0);
  (void)study.run();
  CHECK(study.table() == reference_table());
  CHECK(study.world.trial_epochs > 714);
}

TEST_CASE("a stop in the middle of an epoch is heeded after the step, and no step is trained twice") {
  const int devices = GENERATE(1, 2);
  StudyFixture study(digits_config());
  study.config.width = 16;
  study.world.steps = 7;
  std::atomic<long> asked{0};  // by every device's thread
  int runs = 0;
  for (;; ++runs) {
    REQUIRE(runs < 2000);
    study.stop = 0;
    study.world.before_epoch = [&](const std::string&) {
      if (++asked % 5 == 0) study.stop = SIGTERM;
    };
    if (study.run(devices).stopped_by == 0) break;
  }
  CHECK(runs > 5);
  CHECK(study.world.pauses > 5);
  CHECK(study.table() == reference_table());
  CHECK(study.world.trial_epochs == 714);
}

TEST_CASE("the seconds of a round are those of all parts of an epoch that was paused") {
  class Standing final : public Clock {
   public:
    [[nodiscard]] Utc utc() const override { return SystemClock().utc(); }
    [[nodiscard]] double seconds() const override { return passed; }
    std::atomic<double> passed{0};
  };
  Standing clock;
  StudyFixture study(random_config(4));
  study.config.width = 4;
  study.clock = &clock;
  study.world.steps = 2;
  bool is_long = false;
  study.world.before_epoch = [&](const std::string&) {
    is_long = !is_long;
    clock.passed = clock.passed + (is_long ? 70 : 7);  // long epochs are paused to save states
  };
  CHECK(study.run().stopped_by == 0);
  CHECK(study.world.pauses > 0);
  const std::vector<storage::RoundRecord> rounds = study.open()->rounds("digits");
  REQUIRE_FALSE(rounds.empty());
  for (const storage::RoundRecord& round : rounds) CHECK(round.seconds == Approx(77));
}

TEST_CASE("where memory does not suffice, arrays become narrower, and the study comes to the same") {
  const int memory = GENERATE(1, 3, 8);
  StudyFixture study(digits_config());
  study.config.width = 16;
  study.world.memory = memory;
  (void)study.run(2);
  CHECK(study.table() == reference_table());
  for (const auto& round : study.open()->rounds("digits")) CHECK(round.width <= memory);
  CHECK(std::any_of(study.recorder.notes.begin(), study.recorder.notes.end(), [](const std::string& note) {
    return note.find("out of memory; going on with arrays of 8 slots instead of") != std::string::npos;
  }));
}

TEST_CASE("a trial that memory does not suffice for alone fails with words, the others go on") {
  StudyFixture study(random_config(30));
  study.config.width = 8;
  study.world.too_large = {5, 17};
  (void)study.run();
  CHECK(study.count(State::kFail) == 2);
  CHECK(study.count(State::kComplete) == 28);
  CHECK(study.trials().at(5).reason == "cannot be trained even alone: fake:0: out of memory");
  StudyFixture whole(random_config(30));
  (void)whole.run();
  const auto a = study.trials(), b = whole.trials();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i != 5 && i != 17) CHECK(a[i].value() == b[i].value());
  }
}

TEST_CASE("states beyond the memory for them wait on disk") {
  const bool best = GENERATE(true, false);
  StudyConfig config = digits_config();
  config.select_best = best;
  StudyFixture roomy(config);
  roomy.config.width = 8;
  (void)roomy.run();
  StudyFixture tight(config);
  tight.config.width = 8;
  tight.state_memory = 2000;
  (void)tight.run();
  CHECK(tight.table() == roomy.table());
  CHECK(tight.world.trial_epochs == 714);
  CHECK(std::filesystem::is_empty(tight.checkpoints / "running"));
}

TEST_CASE("choices of earlier runs are made again") {
  StudyFixture study(digits_config());
  study.world.after_epochs = [&](int runs) {
    if (runs == 120) study.stop = SIGINT;
  };
  (void)study.run();
  CHECK(study.world.recalled.empty());
  study.stop = 0;
  (void)study.run();
  CHECK(study.world.recalled == std::map<std::string, std::string>{{"hidden=64", R"({"linear": "loop"})"},
                                                                   {"hidden=128", R"({"linear": "loop"})"}});
}

TEST_CASE("each life of a study that is killed after its first round gets on") {
  StudyFixture study(random_config(8));
  study.config.width = 8;
  study.record_beside = false;
  int lives = 0;
  for (;; ++lives) {
    REQUIRE(lives < 40);
    const int before = study.world.runs;
    study.world.before_epoch = [&, before](const std::string& device) {
      if (study.world.runs > before) throw Error(ErrorKind::kDevice, device + ": killed");
    };
    try {
      (void)study.run();
      break;
    } catch (const Error&) {
    }
  }
  CHECK(lives <= 10);
  CHECK(study.count(State::kComplete) == 8);
}

TEST_CASE("while another program locks the store training goes on, and every row arrives") {
  StudyFixture study(random_config(200), Kept::kInFile);
  study.config.width = 4;
  sqlite3* other = nullptr;
  long epochs_told = 0;
  study.recorder.on_round = [&](const Status& status) { epochs_told = static_cast<long>(status.epochs); };
  study.world.after_epochs = [&](int runs) {
    if (runs == 5) {
      REQUIRE(sqlite3_open(study.config.storage.c_str(), &other) == SQLITE_OK);
      sqlite3_busy_timeout(other, 5000);
      REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    if (runs == 150) {
      CHECK(epochs_told <= 5 * 4);  // nothing is told that is not durable
      CHECK(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr) == SQLITE_OK);
      sqlite3_close(other);
    }
  };
  (void)study.run();
  CHECK(study.world.runs >= 250);
  CHECK(study.count(State::kComplete) == 200);
  CHECK(total_epochs(study.trials()) == 1000);
}

namespace {

/// Another program that locks a store in one of the ways that SQLite has.
class OtherProgram {
 public:
  OtherProgram(const std::filesystem::path& file, const std::string& lock) {
    for (sqlite3** opened : {&reader_, &writer_}) REQUIRE(sqlite3_open(file.c_str(), opened) == SQLITE_OK);
    sqlite3_busy_timeout(writer_, 5000);
    if (lock != "PENDING") {
      run(writer_, ("BEGIN " + lock).c_str());
      return;
    }
    // A writer that waits for a reader: nobody else may begin to read.
    run(writer_, "BEGIN IMMEDIATE; PRAGMA user_version = 7");
    run(reader_, "BEGIN; SELECT count(*) FROM trials");
    sqlite3_busy_timeout(writer_, 0);
    REQUIRE(sqlite3_exec(writer_, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_BUSY);
  }
  ~OtherProgram() {
    for (sqlite3* opened : {reader_, writer_}) {
      sqlite3_exec(opened, "ROLLBACK", nullptr, nullptr, nullptr);
      sqlite3_close(opened);
    }
  }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;

 private:
  static void run(sqlite3* database, const char* sql) {
    REQUIRE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  sqlite3 *reader_ = nullptr, *writer_ = nullptr;
};

}  // namespace

constexpr int kEpochsUnderLock = 250;  // for which a chunk of draws suffices

TEST_CASE("however another program locks the store, training goes on as far as it can, waits, and then goes on") {
  const std::string lock = GENERATE("IMMEDIATE", "EXCLUSIVE", "PENDING");
  const bool beside = GENERATE(true, false);
  CAPTURE(lock, beside);
  StudyConfig config = random_config(600);  // more than are drawn at once: numbers are asked for under the lock
  StudyFixture whole(config), study(config, Kept::kInFile);
  for (StudyFixture* fixture : {&whole, &study}) {
    fixture->config.width = 4;
    fixture->record_beside = beside;
  }
  (void)whole.run();
  std::mutex mutex;  // of what follows
  std::optional<OtherProgram> other;
  int epochs_under_lock = 0;
  bool is_told = false;
  const auto release = [&] {
    epochs_under_lock = study.world.runs;
    other.reset();
  };
  study.world.after_epochs = [&](int runs) {
    const std::lock_guard guard(mutex);
    if (runs == 5) other.emplace(study.config.storage, lock);
    if (is_told && other && runs > kEpochsUnderLock) release();
  };
  study.recorder.on_note = [&](const std::string& line) {
    CHECK_THAT(line, Catch::Contains("another program locks the store"));
    const std::lock_guard guard(mutex);
    is_told = true;
    if (!beside || study.world.runs > kEpochsUnderLock) release();  // or training waits too
  };
  std::condition_variable ended;
  bool has_ended = false;
  std::thread watchdog([&] {  // training may come to a halt sooner
    std::unique_lock guard(mutex);
    if (!ended.wait_for(guard, std::chrono::minutes(2), [&] { return has_ended; }) && other) release();
  });
  CHECK(study.run().stopped_by == 0);
  {
    const std::lock_guard guard(mutex);
    has_ended = true;
  }
  ended.notify_all();
  watchdog.join();
  CHECK(study.recorder.notes.size() == 1);
  if (beside) CHECK(epochs_under_lock > kEpochsUnderLock);
  CHECK(study.table() == whole.table());
}

TEST_CASE("a stop is heeded while another program locks the store") {
  StudyFixture study(random_config(20), Kept::kInFile);
  study.config.width = 4;
  std::optional<OtherProgram> other;
  study.world.after_epochs = [&](int runs) {
    if (runs == 3) other.emplace(study.config.storage, "EXCLUSIVE");
  };
  study.recorder.on_note = [&](const std::string&) { study.stop = SIGINT; };
  try {
    (void)study.run();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kLocked);
  }
  other.reset();
  study.recorder.on_note = nullptr;
  study.world.after_epochs = nullptr;
  study.stop = 0;
  CHECK(study.run().stopped_by == 0);
  CHECK(study.count(State::kComplete) == 20);
}

TEST_CASE("without refill a slot stays empty until the whole array is, and the study comes to the same") {
  StudyFixture study(digits_config());
  study.config.width = 16;
  study.config.refill = false;
  (void)study.run();
  CHECK(study.table() == reference_table());
  StudyFixture refilled(digits_config());
  refilled.config.width = 16;
  (void)refilled.run();
  CHECK(5 * study.world.slot_epochs > 6 * refilled.world.slot_epochs);
}

namespace {

// Runs on these devices until it is stopped.
void run_on(StudyFixture& study, const std::vector<std::string>& labels) {
  study.labels = labels;
  study.stop = 0;
  const int before = study.world.runs;
  study.world.after_epochs = [&study, before](int done) {
    if (done - before >= 6) study.stop = SIGINT;
  };
  (void)study.run(static_cast<int>(labels.size()));
}

}  // namespace

TEST_CASE("each of several devices goes on as it chose itself, and a new one as another") {
  StudyFixture study(random_config(60));
  study.config.width = 4;
  study.config.shape_changing.clear();
  study.world.partition_by = "";
  study.world.choices = {{"a", R"({"threads": 1})"}, {"b", R"({"threads": 2})"}};
  run_on(study, {"a", "b"});
  REQUIRE(study.open()->arrays("digits").size() == 2);
  run_on(study, {"b", "a", "c"});
  const auto& recalled = study.world.recalled_on;
  CHECK(recalled.at({"a", ""}) == study.world.choices["a"]);
  CHECK(recalled.at({"b", ""}) == study.world.choices["b"]);
  CHECK(recalled.contains({"c", ""}));
}

TEST_CASE("arrays go on on the devices that they had, and on free ones where these are gone") {
  StudyFixture study(random_config(60));
  study.config.width = 4;
  study.config.shape_changing.clear();
  study.world.partition_by = "";
  // By device, of which label the array is that it gets; "": none.
  const auto labels_for = [&](const std::vector<std::string>& devices) {
    const std::unique_ptr<storage::Store> store = study.open();
    TrialTable table(study.config, {60});
    (void)table.restore(*store);
    std::map<int, std::string> label_of;
    for (const storage::ArrayRecord& array : store->arrays("digits")) label_of[array.array] = array.device;
    std::vector<std::string> labels(devices.size());
    for (const LeftArray& left : arrays_left(*store, "digits", table, devices)) {
      labels.at(left.device) = label_of.at(left.id);
    }
    return labels;
  };
  using Labels = std::vector<std::string>;
  run_on(study, {"a", "b"});
  CHECK(labels_for({"a", "b"}) == Labels{"a", "b"});
  CHECK(labels_for({"b", "a"}) == Labels{"b", "a"});
  CHECK(labels_for({"b"}) == Labels{"b"});
  CHECK(labels_for({"c", "b"}) == Labels{"a", "b"});
  CHECK(labels_for({"c", "b", "a"}) == Labels{"", "b", "a"});
  run_on(study, {"c"});  // goes on with one of the two: the other is not live any more
  CHECK(labels_for({"c"}) == Labels{"c"});
  CHECK(labels_for({"d"}) == Labels{"c"});
}
