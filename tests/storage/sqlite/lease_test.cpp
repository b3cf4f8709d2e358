/// Leases in a file; what they promise in any store is in contract_lease_test.cpp.
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;
using Mode = SqliteStore::Mode;

constexpr const char* kOther = "process 12 on host bert";

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

TEST_CASE("lease: what an earlier holder tries to write changes no byte of the file", "[lease]") {
  const TempFolder folder;
  const fs::path file = folder / "s.db";
  Lease lease;
  SqliteStore holder = held_store(file, lease);
  SqliteStore other = SqliteStore::open(file, Mode::kReadWrite);
  REQUIRE(other.take_lease("s", lease, "second", kOther));
  const std::string before = read_file(file);
  const std::string message = message_of(ErrorKind::kBusy, [&] { holder.commit("s", sample_round(1)); });
  CHECK_THAT(message, Catch::StartsWith(file.string()) && Catch::Contains("study 's'"));
  CHECK_THAT(message_of(ErrorKind::kBusy, [&] { (void)holder.add_trials("s", {{params_of(1)}}, at(40)); }),
             Catch::Contains(kOther));
  CHECK(read_file(file) == before);
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

}  // namespace
}  // namespace hfta::storage::testing
