#include "storage/sqlite/backup.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/folder.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "storage/checkpoints.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/private_copy.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "trials/pareto.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;
using trials::State;
using trials::Trial;

// Tries: a state that a run replaces while it is copied is looked for again; so is the best trial's, with the table.
constexpr int kMostTries = 5;

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorKind::kConfig, fmt::format("DESTINATION: {}: {}", printable(path.string()), what));
}

// The absolute path of the destination, with the links of its folder resolved.
fs::path checked(const fs::path& destination) {
  std::error_code error;
  const fs::path absolute = fs::absolute(destination);
  if (fs::is_directory(destination, error)) refuse(destination, "found a folder, wanted the name of a new file");
  const fs::path folder = fs::canonical(absolute.parent_path(), error);
  if (error) refuse(destination, fmt::format("found no folder {}", printable(absolute.parent_path().string())));
  fs::path place = folder / absolute.filename();
  for (const fs::path& file : {place, states_folder(place)}) {
    if (fs::symlink_status(file, error).type() == fs::file_type::not_found) continue;
    refuse(file, "it is there already, wanted a new name; remove it first, or choose another");
  }
  return place;
}

/// The states of the store, and those of its copy.
class States {
 public:
  States(const fs::path& store, const fs::path& copy, const Faults& faults)
      : store_(store), copy_(copy), from_(faults, store.parent_path()), to_(faults, copy.parent_path()) {}

  /// Copies the newest state of each trial that verifies.
  void copy(const std::string& study, StateKind kind) {
    Checkpoints copies = copied(study, kind);
    for (const int trial : Checkpoints(from_, checkpoint_folder(store_, study) / name_of(kind)).trials()) {
      if (const std::optional<Checkpoint> state = load(study, kind, trial)) {
        copies.save(trial, state->epoch, state->bytes);
      }
    }
  }

  [[nodiscard]] Checkpoints copied(const std::string& study, StateKind kind) {
    return Checkpoints(to_, checkpoint_folder(copy_, study) / name_of(kind));
  }
  [[nodiscard]] bool has_any(const std::string& study, StateKind kind) {
    return !Checkpoints(from_, checkpoint_folder(store_, study) / name_of(kind)).trials().empty();
  }

 private:
  // Lists again if needed: since the listing a run may have written the next state and removed those listed.
  std::optional<Checkpoint> load(const std::string& study, StateKind kind, int trial) {
    for (int tries = 0; tries < kMostTries; ++tries) {
      Checkpoints listed_anew(from_, checkpoint_folder(store_, study) / name_of(kind));
      if (std::optional<Checkpoint> state = listed_anew.load(trial)) return state;
    }
    return std::nullopt;
  }

  fs::path store_, copy_;
  SystemFiles from_, to_;
};

/// A study as it was copied.
struct CopiedStudy {
  std::string name;
  trials::Objectives objectives;
  std::vector<Trial> trials;
  int rounds = 0;
  std::vector<std::string> damage;
};

std::vector<CopiedStudy> read_copy(const fs::path& copy) {
  SqliteStore store = SqliteStore::open(copy, SqliteStore::Mode::kReadOnly);
  std::vector<CopiedStudy> studies;
  for (const StudySummary& summary : store.studies()) {
    CopiedStudy study{summary.name, summary.objectives, {}, 0, {}};
    const auto reading = [&](const std::function<void()>& read) {
      try {
        read();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kStorage) throw;
        study.damage.emplace_back(error.what());
      }
    };
    reading([&] { study.trials = store.trials(study.name, Store::Damage::kMark); });
    reading([&] { study.rounds = static_cast<int>(store.rounds(study.name).size()); });
    for (const Trial& trial : study.trials) {
      if (SqliteStore::is_marked(trial)) {
        study.damage.push_back(
            fmt::format("study '{}': trial {}: {}", printable(study.name), trial.number, trial.reason));
      }
    }
    studies.push_back(std::move(study));
  }
  return studies;
}

// Whether the copied table's best trials have the weights that they are tested with. Better ones may have taken their
// place on the disk after the table was copied.
bool has_best_weights(const CopiedStudy& study, States& states) {
  if (!states.has_any(study.name, StateKind::kFinished)) return true;
  Checkpoints copies = states.copied(study.name, StateKind::kFinished);
  const std::vector<const Trial*> best = trials::best_of(study.trials, study.objectives);
  return std::all_of(best.begin(), best.end(),
                     [&](const Trial* trial) { return copies.load(trial->number).has_value(); });
}

// Drops the states that do not fit the copied table: of other trials, or of epochs that it does not know.
void drop_others(const CopiedStudy& study, States& states) {
  if (!study.damage.empty()) return;  // a damaged table does not tell whose they are
  for (const StateKind kind : kStateKinds) {
    Checkpoints copies = states.copied(study.name, kind);
    for (const int number : copies.trials()) {
      const auto trial = std::find_if(study.trials.begin(), study.trials.end(),
                                      [&](const Trial& other) { return other.number == number; });
      const bool goes_on = trial != study.trials.end() && trial->state == State::kRunning;
      const bool has_ended = trial != study.trials.end() && trial->state == State::kComplete;
      const int known = trial == study.trials.end() || trial->epochs.empty() ? 0 : trial->epochs.back().epoch;
      const std::optional<Checkpoint> state = copies.load(number);
      const bool belongs = goes_on || (has_ended && kind == StateKind::kFinished);
      // Earlier states, and a running one of the copy's epoch, are from before the trial went on from it.
      const int since = belongs && !trial->copies.empty() ? trial->copies.back().epoch : 0;
      const bool outdated = state && since > 0 && state->epoch < since + (kind == StateKind::kRunning ? 1 : 0);
      if (!belongs || !state || outdated || state->epoch > known) copies.remove(number);
    }
  }
}

// Makes the copy a store of its own: removes the name by which the original was run.
void forget_home(const fs::path& copy) {
  Connection connection(copy, true, false);
  if (!connection.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'hfta_home'").next()) return;
  connection.execute("DELETE FROM hfta_home");
}

// Makes the copy no more readable than the original.
void narrow(const fs::path& copy, const fs::path& original) {
  std::error_code error;
  const fs::perms allowed = fs::status(original, error).permissions();
  if (!error) fs::permissions(copy, fs::status(copy, error).permissions() & allowed, error);
}

// States that are ahead of a table are of no use, so running ones are copied before it. Weights, and what trials go on
// from a copy of, are on the disk before the table counts on them, and gone once better or later ones are: they are
// copied before and after.
std::vector<CopiedStudy> copy_all(SqliteStore& store, const fs::path& copy, States& states, const Faults& faults) {
  for (int tries = 1;; ++tries) {
    (void)store.changed_outside();
    for (const StudySummary& study : store.studies()) {
      for (const StateKind kind : kStateKinds) states.copy(study.name, kind);
    }
    store.copy_to(copy);
    faults.reach("store-copied");
    std::vector<CopiedStudy> studies = read_copy(copy);
    for (const CopiedStudy& study : studies) {
      states.copy(study.name, StateKind::kFinished);
      states.copy(study.name, StateKind::kCopied);
    }
    const bool whole = std::all_of(studies.begin(), studies.end(),
                                   [&](const CopiedStudy& study) { return has_best_weights(study, states); });
    if (whole || tries == kMostTries || !store.changed_outside()) return studies;
  }
}

Backup counted(const fs::path& folder, const std::vector<CopiedStudy>& studies) {
  Backup backup;
  backup.studies = static_cast<int>(studies.size());
  for (const CopiedStudy& study : studies) {
    backup.trials += static_cast<int>(study.trials.size());
    backup.rounds += study.rounds;
    backup.damage.insert(backup.damage.end(), study.damage.begin(), study.damage.end());
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    backup.states += entry.path().extension() == ".safetensors" ? 1 : 0;
    backup.bytes += entry.file_size();
  }
  return backup;
}

void rename_to_new(const fs::path& from, const fs::path& to) {
  int reason = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  std::error_code error;
  if (reason == EINVAL && fs::symlink_status(to, error).type() == fs::file_type::not_found) {  // not supported there
    reason = std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  }
  if (reason == 0) return;
  throw Error(ErrorKind::kStorage,
              fmt::format("{}: cannot be put in place: {}", printable(to.string()), std::strerror(reason)));
}

void put_in_place(const fs::path& copy, const fs::path& destination, const Faults& faults) {
  const Folder folder(destination.parent_path());
  std::error_code error;
  const bool has_states = fs::exists(states_folder(copy), error);
  if (has_states) rename_to_new(states_folder(copy), states_folder(destination));
  try {
    folder.sync();
    faults.reach("states-placed");
    rename_to_new(copy, destination);
  } catch (const Error&) {
    if (has_states) fs::rename(states_folder(destination), states_folder(copy), error);
    throw;
  }
  folder.sync();
  faults.reach("backup-placed");
}

}  // namespace

Backup back_up(const fs::path& path, const fs::path& destination, const Faults& faults) {
  const fs::path place = checked(destination);
  SqliteStore store = SqliteStore::open(path, SqliteStore::Mode::kReadOnly);
  const TemporaryFolder work(".hfta-backup", place.parent_path());
  const fs::path copy = work.path() / place.filename();
  States states(store.path(), copy, faults);
  const std::vector<CopiedStudy> studies = copy_all(store, copy, states, faults);
  for (const CopiedStudy& study : studies) drop_others(study, states);
  forget_home(copy);
  narrow(copy, store.path());
  narrow(states_folder(copy), states_folder(store.path()));
  Backup backup = counted(work.path(), studies);
  put_in_place(copy, place, faults);
  return backup;
}

fs::path keep_before_repair(const fs::path& path) {
  SqliteStore store = SqliteStore::open(path, SqliteStore::Mode::kExamine);
  std::error_code error;
  for (int i = 1;; ++i) {
    fs::path copy = store.path();
    copy += i == 1 ? ".before-repair" : fmt::format(".before-repair-{}", i);
    if (fs::symlink_status(copy, error).type() != fs::file_type::not_found) continue;
    if (store.pending() == SqliteStore::Pending::kNothing) {
      store.copy_to(copy);
    } else {
      copy_as_it_lies(store.path(), copy);
    }
    narrow(copy, store.path());
    return copy;
  }
}

}  // namespace hfta::storage
