#include "engine/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "storage/checkpoints.hpp"

namespace hfta::engine {

namespace doctor {
namespace {

constexpr void (*kStoreChecks[])(const ExaminedStore&, Findings&) = {check_file, check_place};
constexpr void (*kStudyChecks[])(const ExaminedStore&, const ExaminedStudy&, Findings&) = {check_runner, check_rows,
                                                                                           check_states};

// Runs a check. One that meets damage ends with it; the others may find more.
template <typename Check>
void attempt(const std::string& where, Findings& findings, Check check) {
  try {
    check();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kLocked || error.kind() == ErrorKind::kBusy || error.kind() == ErrorKind::kConfig) {
      throw;
    }
    findings.push_back(unreadable(where, error));
  }
}

std::vector<std::string> studies_to_examine(storage::Store& store, const std::optional<std::string>& wanted) {
  std::vector<std::string> names = studies_in(store);
  if (!wanted) return names;
  if (std::find(names.begin(), names.end(), *wanted) != names.end()) return {*wanted};
  for (std::string& name : names) name = printable(name);
  throw Error(ErrorKind::kConfig,
              fmt::format("--study: found '{}', wanted one that is in the store{}", printable(*wanted),
                          names.empty() ? "; it has none" : suggestion(*wanted, names)));
}

}  // namespace

const trials::Trial* ExaminedStudy::trial(int number) const {
  const auto found = std::find_if(rows->begin(), rows->end(), [&](const auto& row) { return row.number == number; });
  return found == rows->end() ? nullptr : &*found;
}

bool ExaminedStudy::goes_on(const trials::Trial& trial) {
  return trial.state == trials::State::kRunning || trial.state == trials::State::kWaiting;
}

std::string place(const std::string& study) { return fmt::format("study '{}'", printable(study)); }

std::vector<std::string> studies_in(storage::Store& store) {
  std::vector<std::string> names;
  for (const storage::StudySummary& study : store.studies()) names.push_back(study.name);
  return names;
}

std::function<std::string()> removal(const std::filesystem::path& store, const std::filesystem::path& folder,
                                     const std::string& name) {
  return [=] {
    if (const std::optional<Folder> found = Folder::find(store.parent_path(), folder)) found->remove(name);
    return "removed " + shown(store, folder / name);
  };
}

Finding unreadable(const std::string& where, const Error& error) {
  return {Severity::kDamage, where, printable(error.what()), "", {}};
}

std::string shown(const std::filesystem::path& store, const std::filesystem::path& path) {
  const std::filesystem::path folder = store.parent_path();
  const std::filesystem::path below = path.lexically_relative(folder);
  return printable((below.empty() ? path : below).string());
}

}  // namespace doctor

Diagnosis examine(const std::filesystem::path& path, const std::optional<std::string>& study, const Clock& clock) {
  using namespace doctor;
  Diagnosis diagnosis{path, {}, {}};
  Findings& findings = diagnosis.findings;
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    (void)storage::SqliteStore::open(path, storage::SqliteStore::Mode::kExamine);  // throws
  const std::string file = printable(path.filename().string());
  if (std::filesystem::file_size(path, error) == 0 && !error) {
    findings.push_back(
        {Severity::kNote,
         file,
         "it is empty: a program ended, or the disk was full, before it was made",
         "the command that was to make it makes it now; if there were studies in it, go back to a backup",
         {}});
    return diagnosis;
  }
  attempt(file, findings, [&] {
    storage::SqliteStore store = storage::SqliteStore::open(path, storage::SqliteStore::Mode::kExamine);
    diagnosis.store = store.path();
    const ExaminedStore examined{store, clock};
    for (const auto check : kStoreChecks) attempt(file, findings, [&] { check(examined, findings); });
    for (const std::string& name : studies_to_examine(store, study)) {
      const std::string where = place(name);
      attempt(where, findings, [&] {
        const ExaminedStudy found = read_study(examined, name, findings);
        for (const auto check : kStudyChecks) attempt(where, findings, [&] { check(examined, found, findings); });
      });
    }
  });
  return diagnosis;
}

}  // namespace hfta::engine
