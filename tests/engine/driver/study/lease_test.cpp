// One runner per study: who may take it, when, and what an earlier holder can still do.

#include "engine/driver/study/lease.hpp"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "child.hpp"
#include "engine/driver/study/study.hpp"
#include "storage/checkpoints.hpp"
#include "storage/memory/memory_store.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "study_fixture.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using storage::Lease;
using storage::SqliteStore;
using storage::Store;
using testing::Child;

// A machine under load may miss a few beats, never so many.
constexpr Heartbeat kPatient{0.05, 400};
// For holders that do not beat at all; a child that is to live beats as kPatient says.
constexpr Heartbeat kHasty{0.05, 6};
// For what is to be seen at once, sooner than kSoon: watching would take two minutes.
constexpr Heartbeat kLong{1, 120};
constexpr double kSoon = 30;  // seconds

double seconds() { return SystemClock().seconds(); }

// The system's clock; at the look at it of that number something happens.
class ActingClock final : public Clock {
 public:
  ActingClock(int at, std::function<void()> act) : at_(at), act_(std::move(act)) {}
  [[nodiscard]] Utc utc() const override { return SystemClock().utc(); }
  [[nodiscard]] double seconds() const override {
    if (++looks_ == at_) act_();
    return SystemClock().seconds();
  }

 private:
  int at_;
  std::function<void()> act_;
  mutable int looks_ = 0;
};

struct Place {
  testing::StudyFolder folder;
  fs::path file = folder.path() / "s.db", states = folder.path() / "s.db.hfta" / "s";
  SystemClock clock;

  [[nodiscard]] SqliteStore open() const { return SqliteStore::open(file, SqliteStore::Mode::kCreate); }
  [[nodiscard]] StudyLease take(Store& store, const Heartbeat& heartbeat) const {
    return {store, "s", clock, heartbeat};
  }
  [[nodiscard]] std::vector<std::string> names() const { return SystemFiles().list(states); }
};

// 'h': took the study; 'b': another runs it; 'e': anything else.
char attempt(const Place& place, Store& store, std::optional<StudyLease>& lease, const Heartbeat& heartbeat) {
  try {
    lease.emplace(place.take(store, heartbeat));
    return 'h';
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kBusy ? 'b' : 'e';
  }
}

// Takes the study, says how that went, and keeps it until it is let go.
std::unique_ptr<Child> start_holder(const Place& place) {
  return std::make_unique<Child>([&place](const Child& self) {
    SqliteStore store = place.open();
    std::optional<StudyLease> lease;
    self.tell(attempt(place, store, lease, kPatient));
    self.wait_for_go();
    return 0;
  });
}

std::string busy_message(const Place& place) {
  SqliteStore store = place.open();
  try {
    const StudyLease lease = place.take(store, kPatient);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBusy);
    return error.what();
  }
  FAIL("two hold one study");
  return {};
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a lease keeps others off one study, and leaves no file behind") {
  const Place place;
  SqliteStore store = place.open();
  {
    StudyLease first = place.take(store, kPatient);
    CHECK(place.names().size() == 1);
    const std::string message = busy_message(place);
    CHECK_THAT(message, Catch::Contains("being run by process " + std::to_string(::getpid()) + " on host ") &&
                            Catch::Contains("stop that one first"));
    CHECK(place.names().size() == 1);
    SqliteStore other = place.open();
    CHECK_NOTHROW(StudyLease(other, "t", place.clock, kPatient));
    const StudyLease moved(std::move(first));
    (void)busy_message(place);
  }
  CHECK(place.names().empty());
  CHECK(store.lease("s")->fence == 1);
  const StudyLease again = place.take(store, kPatient);
  CHECK(store.lease("s")->fence == 2);
}

TEST_CASE("a study in memory has one runner too, and is followed by the same rules") {
  using Fate = storage::MemoryStudies::Fate;
  storage::MemoryStudies studies;
  storage::MemoryStore first(studies), second(studies);
  const SystemClock clock;
  std::optional<StudyLease> lease(std::in_place, first, "s", clock, kPatient);
  try {
    const StudyLease another(second, "s", clock, kPatient);
    FAIL("two hold one study");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBusy);
    CHECK_THAT(error.what(), Catch::Contains("being run by " + first.lease("s")->holder));
  }
  SECTION("let go") {
    lease.reset();
    const StudyLease another(second, "s", clock, kLong);
    CHECK_NOTHROW(another.check_held());
  }
  SECTION("killed") {
    studies.befall("s", Fate::kKilled);
    const double began = seconds();
    const StudyLease another(second, "s", clock, kLong);
    CHECK(seconds() - began < kSoon);
    CHECK_THROWS_AS(lease->check_held(), Error);
  }
  SECTION("hangs") {
    studies.befall("s", Fate::kHangs);
    const double began = seconds();
    const StudyLease another(second, "s", clock, kHasty);
    CHECK(seconds() - began >= 0.3);
    CHECK_THROWS_AS(first.check_held("s"), Error);
    CHECK_NOTHROW(second.check_held("s"));
  }
  CHECK(second.lease("s")->fence == 2);
}

TEST_CASE("a lease whose file cannot be made names the path") {
  const Place place;
  SqliteStore store = place.open();
  SystemFiles().write_atomically(place.states.parent_path(), {});
  try {
    const StudyLease lease = place.take(store, kPatient);
    FAIL("a lease inside a file");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kStorage);
    CHECK_THAT(error.what(), Catch::Contains(place.states.parent_path().string()));
  }
}

TEST_CASE("whoever takes a study removes what earlier runs left, and nothing else") {
  const Place place;
  for (const char* name : {"lease.adele-12-abcdef", "lease.", "lock", "locks", "trial-1"}) {
    SystemFiles().write_atomically(place.states / name, {});
  }
  SqliteStore store = place.open();
  {
    const StudyLease lease = place.take(store, kPatient);
    CHECK(place.names().size() == 3);
  }
  CHECK(place.names() == std::vector<std::string>{"locks", "trial-1"});
}

TEST_CASE("the holder's end decides when another may go on") {
  struct Case {
    const char* name;
    void (*end)(const Place&, Child&);
    Heartbeat heartbeat;  // of the newcomer
    double least, most;   // seconds that it takes
  };
  const Case c = GENERATE(
      Case{"let go",
           [](const Place&, Child& holder) {
             holder.let_go();
             REQUIRE(holder.wait() == 0);
           },
           kLong, 0, kSoon},
      Case{"killed",
           [](const Place&, Child& holder) {
             holder.signal(SIGKILL);
             REQUIRE(holder.wait() == 128 + SIGKILL);
           },
           kLong, 0, kSoon},
      Case{"folder removed", [](const Place& place, Child&) { fs::remove_all(place.states); }, kLong, 0, kSoon},
      Case{"stopped",
           [](const Place&, Child& holder) {
             holder.signal(SIGSTOP);
             REQUIRE(holder.wait_stopped());
           },
           kHasty, 0.3, kSoon});
  INFO(c.name);
  const Place place;
  const auto holder = start_holder(place);
  REQUIRE(holder->hear() == 'h');
  CHECK_THAT(busy_message(place), Catch::Contains("being run by process "));
  c.end(place, *holder);
  SqliteStore store = place.open();
  const double began = seconds();
  const StudyLease lease = place.take(store, c.heartbeat);
  const double took = seconds() - began;
  CHECK(took >= c.least);
  CHECK(took < c.most);
  CHECK(store.lease("s")->fence == 2);
  CHECK(place.names().size() == 1);
  CHECK_NOTHROW(store.check_held("s"));
}

TEST_CASE("a holder on another host is judged by its beat alone") {
  const Place place;
  SqliteStore store = place.open();
  REQUIRE(store.take_lease("s", std::nullopt, "bert-1-abcdef", "process 1 on host bert"));
  const fs::path file = place.states / "lease.bert-1-abcdef";
  fs::create_directories(place.states);
  std::ofstream(file) << "process 1 on host bert\n0\n";  // nobody here locks it: that says nothing
  SECTION("moving") {
    std::atomic<bool> over{false};
    std::thread beating([&] {
      for (int beat = 1; !over; ++beat) {
        std::ofstream(file) << "process 1 on host bert\n" << beat << "\n";
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
    const std::string message = busy_message(place);
    over = true;
    beating.join();
    CHECK_THAT(message, Catch::Contains("being run by process 1 on host bert"));
    CHECK(store.lease("s")->fence == 1);
    CHECK(place.names().size() == 1);
  }
  SECTION("still") {
    const double began = seconds();
    const StudyLease lease = place.take(store, kHasty);
    CHECK(seconds() - began >= 0.3);
    CHECK(store.lease("s")->fence == 2);
    CHECK_FALSE(fs::exists(file));
  }
  SECTION("gone while it is watched") {
    const ActingClock clock(3, [&] { fs::remove(file); });  // the first look at it is before the first at the file
    const double began = seconds();
    const StudyLease lease(store, "s", clock, kLong);
    CHECK_FALSE(fs::exists(file));
    CHECK(seconds() - began < kSoon);
    CHECK(store.lease("s")->fence == 2);
  }
}

TEST_CASE("of eight processes that start at once, one runs the study and seven are told who does") {
  struct Case {
    const char* name;
    int signal;  // what befalls an earlier holder; 0: it lets go, -1: there is none, and no store either
  };
  const Case c =
      GENERATE(Case{"no store yet", -1}, Case{"let go", 0}, Case{"killed", SIGKILL}, Case{"stopped", SIGSTOP});
  const int round = GENERATE(range(0, 4));
  INFO(c.name << ", round " << round);
  const Place place;
  std::unique_ptr<Child> earlier;
  if (c.signal >= 0) {
    earlier = start_holder(place);
    REQUIRE(earlier->hear() == 'h');
    c.signal == 0 ? earlier->let_go() : earlier->signal(c.signal);
    if (c.signal == SIGSTOP) REQUIRE(earlier->wait_stopped());
    if (c.signal != SIGSTOP) (void)earlier->wait();
  }
  // The stopped one is watched for three seconds: time enough for the new holder's beats on a machine under load.
  const Heartbeat heartbeat = c.signal == SIGSTOP ? Heartbeat{0.05, 60} : kPatient;
  std::vector<std::unique_ptr<Child>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<Child>([&](const Child& self) {
      self.tell('r');
      self.wait_for_go();
      SqliteStore store = place.open();
      std::optional<StudyLease> lease;
      self.tell(attempt(place, store, lease, heartbeat));
      self.wait_for_go();
      if (lease) store.check_held("s");
      return 0;
    }));
  }
  for (const auto& child : all) REQUIRE(child->hear() == 'r');
  for (const auto& child : all) child->let_go();
  std::map<char, int> words;
  for (const auto& child : all) ++words[child->hear()];
  CHECK(words == std::map<char, int>{{'h', 1}, {'b', 7}});
  CHECK(place.names().size() == 1);
  for (const auto& child : all) child->let_go();
  for (const auto& child : all) CHECK(child->wait() == 0);
  CHECK(place.names().empty());
  CHECK(place.open().lease("s")->fence == (c.signal < 0 ? 1 : 2));
}

TEST_CASE("a holder that is continued after it lost the study changes nothing, and learns who has it") {
  const Place place;
  StudyConfig config = testing::digits_config();
  config.study = "s";
  const storage::StudyRecord record = new_record(config, {"/digits.yaml", {}});
  const trials::Params params = {{"lr", 0.1}, {"wd", std::int64_t{0}}, {"dropout", 0.1}, {"hidden", std::int64_t{64}}};
  const std::vector<std::byte> old_state(100, std::byte{1}), new_state(200, std::byte{2});
  const auto epoch = [](int number) {
    storage::Changes changes;
    changes.epochs = {{0, {number, {{"val_accuracy", 0.5}}}, 0.5}};
    return changes;
  };
  SystemFiles files;

  Child old([&](const Child&) {
    SqliteStore store = place.open();
    const StudyLease lease = place.take(store, kPatient);
    store.create(record);
    (void)store.add_trials("s", {{params}}, place.clock.utc());
    store.commit("s", epoch(1));
    storage::Checkpoints running(files, place.states / "running");
    running.save(0, 1, old_state);
    std::raise(SIGSTOP);
    int written = 0;
    const auto try_to = [&](const auto& write) {
      try {
        write();
        ++written;
      } catch (const Error& error) {
        const std::string wanted = "taken over by process " + std::to_string(::getppid()) + " on host ";
        if (error.kind() != ErrorKind::kBusy || std::string(error.what()).find(wanted) == std::string::npos) ++written;
      }
    };
    try_to([&] { store.commit("s", epoch(2)); });
    try_to([&] { (void)store.add_trials("s", {{params}}, place.clock.utc()); });
    try_to([&] { store.update(record); });
    try_to([&] {
      store.check_held("s");
      running.save(0, 2, old_state);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // a few beats
    return written;
  });
  REQUIRE(old.wait_stopped());

  SqliteStore store = place.open();
  const StudyLease lease = place.take(store, kHasty);
  store.commit("s", epoch(2));
  storage::Checkpoints running(files, place.states / "running");
  running.save(0, 2, new_state);
  const std::string before = content(place.file);
  const std::vector<std::string> names = place.names(), states = files.list(place.states / "running");
  CHECK(states.size() == 2);

  old.signal(SIGCONT);
  CHECK(old.wait() == 0);
  CHECK(content(place.file) == before);
  CHECK(place.names() == names);
  CHECK(files.list(place.states / "running") == states);
  CHECK(running.load(0)->bytes == new_state);
  CHECK_NOTHROW(store.commit("s", epoch(3)));
}

}  // namespace hfta::engine
