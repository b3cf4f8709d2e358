#pragma once
/// The checks that doctor.cpp goes through. Internal to engine/doctor.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "engine/config.hpp"
#include "engine/doctor/doctor.hpp"
#include "engine/report/report.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::engine::doctor {

using Findings = std::vector<Finding>;

/// A store that could be opened.
struct ExaminedStore {
  storage::SqliteStore& store;
  const Clock& clock;
};

/// A study as far as it could be read.
struct ExaminedStudy {
  std::string name;
  std::filesystem::path store;   ///< Real path of the store's file.
  std::filesystem::path folder;  ///< Folder of its states.
  std::optional<storage::StudyRecord> record;
  std::optional<StudyConfig> config;               ///< Absent where Optuna made the study, or it is damaged.
  std::optional<std::vector<trials::Trial>> rows;  ///< Damaged ones are marked. Absent where they cannot be read.
  std::vector<int> draws;                          ///< Numbers of the trials that are ours, by draw.
  std::optional<Runner> runner;

  [[nodiscard]] bool is_being_run() const { return runner && runner->alive; }
  [[nodiscard]] const trials::Trial* trial(int number) const;
  /// Whether the trial counts as RUNNING for the driver: it will be resumed, from its state if it has one.
  [[nodiscard]] static bool goes_on(const trials::Trial& trial);
};

/// Checks the file itself: what is left beside it, its pages, its tables' version.
void check_file(const ExaminedStore& store, Findings& findings);
/// Checks where the file lies: by which name it was run, who may write to it.
void check_place(const ExaminedStore& store, Findings& findings);

/// Reads a study; what cannot be read of it is a finding.
[[nodiscard]] ExaminedStudy read_study(const ExaminedStore& store, const std::string& name, Findings& findings);
/// Whether a trial's values are not those that follow from its epochs: another program has ended it, or has changed it.
[[nodiscard]] bool was_ended_elsewhere(const trials::Trial& trial, const StudyConfig& config);
/// Checks a study's rows, and the values that follow from them.
void check_rows(const ExaminedStore& store, const ExaminedStudy& study, Findings& findings);
/// Checks who runs the study, and what earlier runners left.
void check_runner(const ExaminedStore& store, const ExaminedStudy& study, Findings& findings);
/// Checks the states of its trials on disk, and whether there is room for more.
void check_states(const ExaminedStore& store, const ExaminedStudy& study, Findings& findings);

/// "study 'digits'": where a study's own findings are.
[[nodiscard]] std::string place(const std::string& study);
/// The names of all studies.
[[nodiscard]] std::vector<std::string> studies_in(storage::Store& store);
/// Removes `name` from `folder`, which lies beside the store, and says so; see Finding::repair.
[[nodiscard]] std::function<std::string()> removal(const std::filesystem::path& store,
                                                   const std::filesystem::path& folder, const std::string& name);

/// The finding of a check that could not read what it is to check.
[[nodiscard]] Finding unreadable(const std::string& where, const Error& error);
/// `path` as it is shown: from the store's file on.
[[nodiscard]] std::string shown(const std::filesystem::path& store, const std::filesystem::path& path);

inline constexpr const char* kRepair = "hfta-tune doctor --repair";

}  // namespace hfta::engine::doctor
