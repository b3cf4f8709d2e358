// doctor: repairs what can be repaired, while it holds the studies as a run does.

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "engine/driver/study/lease.hpp"
#include "engine/driver/study/runner.hpp"
#include "storage/sqlite/backup.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using storage::SqliteStore;

// Throws if a study is being run, before a byte is changed, even by taking back a half-written transaction. Nobody can
// run a store that cannot be read, and nothing of it is repaired.
void refuse_if_run(const fs::path& path, const Clock& clock) try {
  SqliteStore store = SqliteStore::open(path, SqliteStore::Mode::kExamine);
  for (const std::string& name : doctor::studies_in(store)) {
    const auto runner = runner_of(store, name, clock);
    if (!runner || !runner->alive) continue;
    throw Error(ErrorKind::kBusy,
                fmt::format("{}: the study '{}' is being run by {}; stop that one first, or wait",
                            printable(store.path().string()), printable(name), printable(runner->holder)));
  }
} catch (const Error& error) {
  if (error.kind() != ErrorKind::kStorage) throw;
}

std::string repaired(const Finding& finding) {
  try {
    return finding.repair();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBusy) throw;
    return "could not mend it: " + printable(error.what());
  }
}

}  // namespace

Diagnosis repair(const fs::path& path, const std::optional<std::string>& study, const Clock& clock) {
  Diagnosis found = examine(path, study, clock);
  refuse_if_run(path, clock);
  const bool any = std::any_of(found.findings.begin(), found.findings.end(), [](const Finding& f) { return f.repair; });
  if (!any) return found;
  std::vector<std::string> done;
  done.push_back(fmt::format("copied the store to {}", doctor::shown(found.store, storage::keep_before_repair(path))));
  try {
    SqliteStore store = SqliteStore::open(path, SqliteStore::Mode::kReadWrite);
    std::vector<StudyLease> leases;
    for (const std::string& name : study ? std::vector{*study} : doctor::studies_in(store)) {
      leases.emplace_back(store, name, clock);
    }
    for (const Finding& finding : found.findings) {
      if (finding.repair) done.push_back(repaired(finding));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBusy || error.kind() == ErrorKind::kLocked) throw;
    // If the studies cannot be taken as a run takes them, another process may be running them.
    done.push_back("mended nothing, since the store cannot be opened for writing: " + printable(error.what()));
  }
  Diagnosis left = examine(path, study, clock);
  left.done = std::move(done);
  return left;
}

}  // namespace hfta::engine
