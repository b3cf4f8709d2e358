#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/checkpoints.hpp"
#include "storage/json.hpp"
#include "storage/sqlite/objectives.hpp"
#include "storage/sqlite/schema.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "storage/sqlite/store_impl.hpp"
#include "storage/sqlite/utc.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kStorage, printable(path.string()) + ": " + what);
}

/// The path of the file itself: SQLite makes a journal beside it, and we a folder, so that a link to it must not count.
/// The target of a link need not exist yet.
fs::path located(fs::path path) {
  constexpr int kMostLinks = 40;  // the kernel's own limit
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, error); ++links) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  const fs::path absolute = fs::absolute(path);
  const fs::path folder = fs::canonical(absolute.parent_path(), error);
  return error ? absolute : folder / absolute.filename();
}

/// SQLite names the journal after the file, and gives no better reason than "unable to open".
void check_can_be_made(const fs::path& path, const fs::path& folder) {
  constexpr std::size_t kJournalEnding = std::string_view("-journal").size();
  const std::string name = path.filename().string();
  if (name.size() + kJournalEnding > NAME_MAX) {
    refuse(path, fmt::format("cannot be created: its name has {} bytes, wanted at most {}", name.size(),
                             NAME_MAX - kJournalEnding));
  }
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    refuse(path, fmt::format("cannot be created: the folder {} cannot be written to: {}", printable(folder.string()),
                             std::strerror(errno)));
  }
}

/// Checks the path first: SQLite itself would only say "unable to open database file".
fs::path checked(const fs::path& path, SqliteStore::Mode mode) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) refuse(path, "found a folder, wanted a study store (an SQLite file)");
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) refuse(path, "found a device or pipe, wanted a study store (an SQLite file)");
    return located(path);
  }
  if (status.type() == fs::file_type::none) refuse(path, "cannot be reached: " + error.message());
  if (mode != SqliteStore::Mode::kCreate)
    refuse(path, "no such file, wanted a study store; a run of hfta-tune creates it");
  fs::path place = located(path);
  const fs::path folder = place.parent_path();
  if (!fs::is_directory(folder, error)) {
    refuse(path, fmt::format("cannot be created: there is no folder {}; create it first", printable(folder.string())));
  }
  check_can_be_made(place, folder);
  return place;
}

/// Walks the whole file's structure: damage found now costs nothing, damage found during a study costs a round.
void check_health(Connection& connection) {
  Query query = connection.query("PRAGMA quick_check(1)");
  if (!query.next() || query.view(0) == "ok") return;
  std::string_view found = query.view(0);
  found.remove_prefix(found.rfind('\n') + 1);  // behind SQLite's headline
  refuse(connection.path(),
         fmt::format("damaged ({}); keep the file, go back to a copy of it, or salvage its rows with "
                     "sqlite3 '{}' '.recover'",
                     printable(found), printable(connection.path().string())));
}

/// A file that somebody set to WAL goes back to a rollback journal if nobody else holds it now. If somebody does, it
/// stays as it is: durable and correct too.
void leave_wal(Connection& connection) {
  if (Query mode = connection.query("PRAGMA journal_mode"); !mode.next() || mode.view(0) != "wal") return;
  try {
    connection.execute("PRAGMA journal_mode=DELETE");
  } catch (const Error&) {
  }
}

void count_trials(Connection& connection, std::map<std::int64_t, StudySummary>& by_id) {
  Query query = connection.query(
      "SELECT study_id, state, count(*), max(max(coalesce(datetime_start, ''), coalesce(datetime_complete, '')))"
      " FROM trials GROUP BY study_id, state");
  while (query.next()) {
    const auto found = by_id.find(query.integer(0));
    if (found == by_id.end()) continue;
    StudySummary& study = found->second;
    study.counts[query.text(1)] = query.int32(2);
    const auto time = utc_from(query.view(3));
    if (time && (!study.last_change || *time > *study.last_change)) study.last_change = time;
  }
}

void find_best(Connection& connection, std::map<std::int64_t, StudySummary>& by_id) {
  // 9e999 is SQLite's infinity.
  Query query = connection.query(
      std::string("SELECT study_id, min(value), max(value) FROM (SELECT t.study_id, CASE v.value_type"
                  " WHEN 'INF_POS' THEN 9e999 WHEN 'INF_NEG' THEN -9e999 ELSE v.value END AS value FROM trials t"
                  " JOIN trial_values v ON v.trial_id = t.trial_id AND v.objective = 0 WHERE t.state = 'COMPLETE'"
                  " AND NOT ") +
      kViolates + ") GROUP BY study_id");
  while (query.next()) {
    const auto found = by_id.find(query.integer(0));
    if (found == by_id.end() || found->second.objectives.size() > 1) continue;
    found->second.best = query.real(found->second.objectives.front().goal == trials::Goal::kMinimize ? 1 : 2);
  }
}

}  // namespace

SqliteStore::Impl::Impl(const fs::path& path, Mode mode)
    : connection(mode == Mode::kExamine
                     ? Connection::examining(checked(path, mode))
                     : Connection(checked(path, mode), mode != Mode::kReadOnly, mode == Mode::kCreate)),
      contents(inspect(connection)) {}

std::unique_ptr<SqliteStore::Impl> SqliteStore::Impl::open(const fs::path& path, Mode mode) {
  auto impl = std::make_unique<Impl>(path, mode);
  // Under another name (hard link, bind mount) SQLite would look for another journal, and we for other states.
  if (const std::optional<fs::path> home = impl->other_home()) impl = std::make_unique<Impl>(*home, mode);
  return impl;
}

void SqliteStore::Impl::prepare(Mode mode) {
  if (contents == Contents::kEmpty && mode != Mode::kCreate) fail("not a study: found an empty database");
  if (mode == Mode::kReadOnly || mode == Mode::kExamine)
    return;  // rows are compared with their digests; a walk over the file would cost seconds
  if (contents != Contents::kEmpty) check_health(connection);
  leave_wal(connection);
  if (contents != Contents::kHfta) complete_tables(connection);
  contents = Contents::kHfta;
}

std::optional<fs::path> SqliteStore::Impl::home() {
  if (!connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hfta_home'").next()) return {};
  Query query = connection.query("SELECT path FROM hfta_home WHERE id = 1");
  return query.next() ? std::optional<fs::path>(query.text(0)) : std::nullopt;
}

std::optional<fs::path> SqliteStore::Impl::other_home() {
  std::optional<fs::path> found = home();
  if (!found) return {};
  std::error_code error;
  const bool same = found->is_absolute() && fs::equivalent(*found, connection.path(), error) && !error;
  return same && *found != connection.path() ? found : std::nullopt;
}

void SqliteStore::Impl::fail(const std::string& what) const { refuse(connection.path(), what); }

std::optional<std::int64_t> SqliteStore::Impl::find_study(const std::string& name) {
  Query query = connection.query("SELECT study_id FROM studies WHERE study_name = ?1");
  query.bind(name);
  if (!query.next()) return std::nullopt;
  return query.integer(0);
}

std::int64_t SqliteStore::Impl::study_id(const std::string& name) {
  const auto id = find_study(name);
  if (id) return *id;
  std::vector<std::string> names;
  Query query = connection.query("SELECT study_name FROM studies ORDER BY study_id LIMIT 100");
  while (query.next()) names.push_back(printable(query.text(0)));
  throw no_study(this->name(), name, names);
}

bool SqliteStore::Impl::has_hfta_tables() {
  return connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hfta_meta'").next();
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;
SqliteStore::SqliteStore(SqliteStore&&) noexcept = default;
SqliteStore& SqliteStore::operator=(SqliteStore&&) noexcept = default;

SqliteStore SqliteStore::open(const fs::path& path, Mode mode) {
  std::unique_ptr<Impl> impl = Impl::open(path, mode);
  impl->prepare(mode);
  return SqliteStore(std::move(impl));
}

// Opens the file to find out: if a process was killed while it made the store, the file may have bytes that a journal
// beside it takes back.
std::optional<SqliteStore> SqliteStore::open_if_made(const fs::path& path, Mode mode) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) return std::nullopt;
  std::unique_ptr<Impl> impl = Impl::open(path, mode);
  if (impl->contents == Contents::kEmpty) return std::nullopt;
  impl->prepare(mode);
  return SqliteStore(std::move(impl));
}

const fs::path& SqliteStore::path() const { return impl_->connection.path(); }

void SqliteStore::wait_at_most(std::optional<std::chrono::milliseconds> longest) {
  impl_->connection.wait_at_most(longest.value_or(Connection::kPatience));
}

StatesPlace SqliteStore::states(const std::string& study) const {
  return {path().parent_path(), checkpoint_folder(path(), study)};
}

void SqliteStore::copy_to(const fs::path& file) { impl_->connection.copy_to(file); }

void SqliteStore::use(const Faults& faults) { impl_->faults = &faults; }

std::vector<StudySummary> SqliteStore::studies() {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  std::map<std::int64_t, StudySummary> by_id;
  Query query = impl_->connection.query("SELECT study_id, study_name FROM studies ORDER BY study_id");
  while (query.next()) by_id[query.integer(0)].name = query.text(1);
  for (auto& [id, study] : by_id) {
    study.objectives = impl_->reading(study.name, [&, id = id] { return read_objectives(impl_->connection, id); });
  }
  count_trials(impl_->connection, by_id);
  find_best(impl_->connection, by_id);
  std::vector<StudySummary> list;
  list.reserve(by_id.size());
  for (auto& [id, study] : by_id) list.push_back(std::move(study));
  return list;
}

std::optional<StudyRecord> SqliteStore::find(const std::string& study) {
  Transaction snapshot(impl_->connection, Transaction::Kind::kRead);
  const auto id = impl_->find_study(study);
  if (!id) return std::nullopt;
  return impl_->reading(study, [&] { return impl_->read_study(study, *id); });
}

StudyRecord SqliteStore::Impl::read_study(const std::string& name, std::int64_t id) {
  StudyRecord record;
  record.name = name;
  record.objectives = read_objectives(connection, id);
  if (!has_hfta_tables()) return record;
  Query ours = connection.query(has_digests() ? "SELECT metric, config, config_json, space_json, run_caps_json, digest "
                                                "FROM hfta_studies WHERE study_id = ?1"
                                              : "SELECT metric, config, config_json, space_json, run_caps_json, NULL "
                                                "FROM hfta_studies WHERE study_id = ?1");
  ours.bind(id);
  if (!ours.next()) return record;
  if (!ours.is_null(5) &&
      Digest(ours.integer(5)) != Digest::of(Part::kStudy, name, joined_directions(connection, id), ours.view(0),
                                            ours.view(1), ours.view(2), ours.view(3), ours.view(4))) {
    throw Error(ErrorKind::kStorage, std::string("its config: ") + kDamaged);
  }
  name_metrics(ours.view(0), record.objectives);
  record.config = ours.text(1);
  record.config_json = ours.text(2);
  record.space = space_from_json(ours.view(3));
  record.run_caps = ints_from_json(ours.view(4));
  Query progress =
      connection.query("SELECT value_json FROM study_system_attributes WHERE study_id = ?1 AND \"key\" = ?2");
  if (progress.bind(id, kProgressKey).next()) record.progress = progress_from_json(progress.view(0));
  return record;
}

}  // namespace hfta::storage
