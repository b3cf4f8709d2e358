/// Leases: taken by one, and what an earlier holder writes is refused whole.
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

constexpr const char* kOther = "process 12 on host bert";

struct Write {
  const char* name;
  void (*run)(Store&);
};

const Write kWrites[] = {{"commit", [](Store& store) { store.commit("s", sample_round(1)); }},
                         {"add_trials", [](Store& store) { (void)store.add_trials("s", {{params_of(1)}}, at(40)); }},
                         {"update",
                          [](Store& store) {
                            StudyRecord study = sample_study("s");
                            study.config = "edited";
                            store.update(study);
                          }},
                         {"check_held", [](Store& store) { store.check_held("s"); }}};

/// A store with a study, held by this lease.
SqliteStore held_store(const fs::path& file, Lease& lease) {
  SqliteStore store = SqliteStore::open(file, Mode::kCreate);
  lease = store.take_lease("s", std::nullopt, "first", "process 11 on host adele").value();
  store.hold("s", lease);
  store.create(sample_study("s"));
  (void)store.add_trials("s", std::vector<NewTrial>(kSampleTrials, {params_of(0)}), at(0));
  store.commit("s", sample_round(0));
  return store;
}

TEST_CASE("lease: taking is compare and swap", "[lease]") {
  const TempFolder folder;
  SqliteStore a = SqliteStore::open(folder / "s.db", Mode::kCreate),
              b = SqliteStore::open(folder / "s.db", Mode::kReadWrite);
  CHECK_FALSE(a.lease("s"));
  const auto first = a.take_lease("s", std::nullopt, "first", "A");
  CHECK((first == Lease{1, "first", "A"}));
  CHECK((b.lease("s") == first));
  const std::optional<Lease> wrong[] = {std::nullopt, Lease{0, "first", "A"}, Lease{2, "first", "A"},
                                        Lease{1, "another", "A"}};
  for (const std::optional<Lease>& seen : wrong) CHECK_FALSE(b.take_lease("s", seen, "second", "B"));
  CHECK((b.lease("s") == first));
  CHECK((b.take_lease("s", first, "second", "B") == Lease{2, "second", "B"}));
  CHECK_FALSE(a.take_lease("s", first, "third", "A"));
  CHECK_FALSE(a.lease("t"));  // by study
  CHECK((a.take_lease("t", std::nullopt, "t1", "A") == Lease{1, "t1", "A"}));
  CHECK((b.lease("s")->fence == 2));
}

TEST_CASE("lease: the holder writes; once taken over from it writes nothing and names the new one", "[lease]") {
  for (const Write& write : kWrites) {
    INFO(write.name);
    const TempFolder folder;
    const fs::path file = folder / "s.db";
    Lease lease;
    SqliteStore holder = held_store(file, lease);
    write.run(holder);
    SqliteStore other = SqliteStore::open(file, Mode::kReadWrite);
    const auto taken = other.take_lease("s", lease, "second", kOther);
    REQUIRE(taken);
    const std::string before = read_file(file);
    for (const Write& refused : kWrites) {
      const std::string message = message_of(ErrorKind::kBusy, [&] { refused.run(holder); });
      CHECK_THAT(message, Catch::Contains("s.db") && Catch::Contains("study 's'") &&
                              Catch::Contains("taken over by process 12 on host bert") &&
                              Catch::Contains("this one stops"));
      CHECK(message.find('\n') == std::string::npos);
    }
    CHECK(read_file(file) == before);
    other.hold("s", *taken);
    for (const Write& allowed : kWrites) CHECK_NOTHROW(allowed.run(other));
  }
}

TEST_CASE("lease: a study that is not there yet is made by the holder alone", "[lease]") {
  const TempFolder folder;
  SqliteStore late = SqliteStore::open(folder / "s.db", Mode::kCreate),
              holder = SqliteStore::open(folder / "s.db", Mode::kReadWrite);
  const auto first = late.take_lease("s", std::nullopt, "first", "A");
  late.hold("s", first.value());
  const auto second = holder.take_lease("s", first, "second", kOther);
  holder.hold("s", second.value());
  CHECK_THAT(message_of(ErrorKind::kBusy, [&] { late.create(sample_study("s")); }), Catch::Contains(kOther));
  CHECK_FALSE(late.find("s"));
  CHECK_NOTHROW(late.create(sample_study("t")));  // another study, of which it holds no lease
  CHECK_NOTHROW(holder.create(sample_study("s")));
}

TEST_CASE("lease: a study that was deleted, and made anew by another, is not written to", "[lease]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  Lease lease;
  SqliteStore holder = held_store(file, lease);
  Connection(file, true, false)
      .execute(
          "PRAGMA foreign_keys=OFF; BEGIN; DELETE FROM trial_params; DELETE FROM trial_values;"
          "DELETE FROM trial_intermediate_values; DELETE FROM trials; DELETE FROM study_directions;"
          "DELETE FROM study_system_attributes; DELETE FROM studies; COMMIT");
  CHECK_THAT(message_of(ErrorKind::kBusy, [&] { holder.commit("s", sample_round(1)); }),
             Catch::Contains("deleted by another program"));
  Lease again;
  SqliteStore other = SqliteStore::open(file, Mode::kReadWrite);
  again = other.take_lease("s", std::nullopt, "again", kOther).value();
  CHECK(again.fence == lease.fence);
  other.create(sample_study("s"));
  CHECK_THAT(message_of(ErrorKind::kBusy, [&] { (void)holder.add_trials("s", {{params_of(0)}}, at(0)); }),
             Catch::Contains(kOther));
  CHECK(other.trials("s").empty());
}

TEST_CASE("lease: hostile names do not reach the terminal", "[lease]") {
  const TempFolder folder;
  SqliteStore store = SqliteStore::open(folder / "s.db", Mode::kCreate);
  const auto first = store.take_lease("s", std::nullopt, "first", "A");
  store.hold("s", first.value());
  REQUIRE(store.take_lease("s", first, "second", "\x1b[2J\nB'; DROP TABLE hfta_leases; --"));
  const std::string message = message_of(ErrorKind::kBusy, [&] { store.check_held("s"); });
  CHECK_THAT(message, Catch::Contains("\\x1b[2J\\x0aB'; DROP"));
  CHECK(store.lease("s")->fence == 2);
}

}  // namespace
}  // namespace hfta::storage::testing
