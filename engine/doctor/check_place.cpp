#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "storage/checkpoints.hpp"

namespace hfta::engine::doctor {
namespace {

namespace fs = std::filesystem;

void check_home(storage::SqliteStore& store, Findings& findings) {
  const std::optional<fs::path> home = store.home();
  if (!home || *home == store.path()) return;
  std::error_code error;
  const std::string was = printable(home->string());
  Finding finding{Severity::kNote, shown(store.path(), store.path()), "", "", {}};
  if (fs::exists(*home, error)) {
    finding.found = fmt::format(
        "it is a copy of a store that was run as {}, which is there still: each has states and a "
        "runner of its own",
        was);
  } else {
    finding.found = fmt::format("it was run as {}, and has been moved or copied since", was);
  }
  const bool left_behind =
      !fs::exists(storage::states_folder(store.path()), error) && fs::exists(storage::states_folder(*home), error);
  if (left_behind) {
    finding.found += "; it has no states here, so that trials begin anew";
    finding.advice = fs::exists(*home, error) ? "for a copy with its states use hfta-tune backup"
                                              : fmt::format("move {}.hfta to {}", was,
                                                            printable(storage::states_folder(store.path()).string()));
  }
  findings.push_back(std::move(finding));
}

void check_access(const fs::path& store, const fs::path& path, int wanted, const char* words, Findings& findings) {
  if (::faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) == 0 || errno == ENOENT) return;
  findings.push_back({Severity::kDamage,
                      shown(store, path),
                      fmt::format("{}: {}; runs cannot go on", words, std::strerror(errno)),
                      "change its permissions or its owner, or run hfta-tune as the user who owns it",
                      {}});
}

// Folders of studies that the store has not.
void check_strangers(storage::SqliteStore& store, Findings& findings) {
  const fs::path path = storage::states_folder(store.path());
  try {
    const std::optional<Folder> folder = Folder::find(store.path().parent_path(), path);
    if (!folder) return;
    std::set<std::string> known;
    for (const storage::StudySummary& study : store.studies()) {
      known.insert(storage::checkpoint_folder(store.path(), study.name).filename().string());
    }
    for (const Folder::Entry& entry : folder->entries()) {
      if (known.contains(entry.name)) continue;
      findings.push_back({Severity::kNote,
                          shown(store.path(), path / entry.name),
                          fmt::format("{} of no study in this store; hfta-tune leaves it alone", entry.kind),
                          "if the study was deleted, remove it",
                          {}});
    }
  } catch (const Error& error) {
    findings.push_back(unreadable(shown(store.path(), path), error));
  }
}

}  // namespace

void check_place(const ExaminedStore& examined, Findings& findings) {
  const fs::path& path = examined.store.path();
  check_home(examined.store, findings);
  check_access(path, path, R_OK | W_OK, "it cannot be written", findings);
  check_access(path, path.parent_path(), W_OK | X_OK,
               "its folder cannot be written to, which SQLite needs for journals", findings);
  check_access(path, storage::states_folder(path), R_OK | W_OK | X_OK, "the folder of states cannot be written to",
               findings);
  check_strangers(examined.store, findings);
}

}  // namespace hfta::engine::doctor
