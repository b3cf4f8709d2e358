#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "engine/driver/goals/selection.hpp"
#include "engine/driver/study/runner.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/report/words.hpp"
#include "storage/checkpoints.hpp"

namespace hfta::engine::doctor {
namespace {

using trials::State;
using trials::Trial;

constexpr const char* kGoBack = "keep the file and go back to a backup of it, or begin a new study with --fresh";

// Turns damage that reading meets into a finding; a store that is locked or busy throws.
template <typename Read>
void reading(const std::string& where, Findings& findings, Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kLocked || error.kind() == ErrorKind::kBusy) throw;
    findings.push_back(unreadable(where, error));
  }
}

// The values that a trial should have: of its last epoch, or by metric.select of its best; empty if epochs do not say.
std::vector<double> expected_values(const Trial& trial, const StudyConfig& config) {
  std::vector<double> values;
  const int copied = trial.copies.empty() ? 0 : trial.copies.back().epoch;  // what went on from there is another model
  for (const trials::EpochRecord& epoch : trial.epochs) {
    if (config.select_best && epoch.epoch <= copied) continue;
    std::vector<double> now;
    for (const trials::Objective& objective : config.objectives) {
      const auto metric = epoch.metrics.find(objective.metric);
      if (metric == epoch.metrics.end() || !std::isfinite(metric->second)) return {};
      now.push_back(metric->second);
    }
    const std::optional<double> before = values.empty() ? std::nullopt : std::optional(values.front());
    if (is_selected(config, now.front(), before)) values = std::move(now);
  }
  return values;
}

void check_values(const ExaminedStudy& study, Findings& findings) {
  const std::set<int> ours(study.draws.begin(), study.draws.end());
  for (const Trial& trial : *study.rows) {
    const bool has_ended = trial.state == State::kComplete || trial.state == State::kPruned;
    if (!has_ended || trial.values.empty() || !ours.contains(trial.number)) continue;
    const std::vector<double> expected = expected_values(trial, *study.config);
    const std::vector<double>& found = trial.values;
    for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
      if (expected[i] == found[i]) continue;
      findings.push_back({Severity::kNote,
                          place(study.name),
                          fmt::format("trial {}: its value is {}, the {} of its epochs' {} is {}", trial.number,
                                      shortest(found[i]), study.config->select_best ? "best" : "last",
                                      printable(study.config->objectives[i].metric), shortest(expected[i])),
                          "another program has ended it with a value of its own, or has changed it since",
                          {}});
    }
  }
}

}  // namespace

bool was_ended_elsewhere(const Trial& trial, const StudyConfig& config) {
  return !trial.values.empty() && expected_values(trial, config) != trial.values;
}

ExaminedStudy read_study(const ExaminedStore& examined, const std::string& name, Findings& findings) {
  storage::SqliteStore& store = examined.store;
  ExaminedStudy study;
  study.name = name;
  study.store = store.path();
  study.folder = store.states(name).folder;
  const std::string where = place(name);
  reading(where, findings, [&] { study.record = store.find(name); });
  reading(where, findings, [&] { study.runner = runner_of(store, name, examined.clock); });
  if (!study.record) return study;  // needed to read the trials
  reading(where, findings, [&] { study.rows = store.trials(name, storage::Store::Damage::kMark); });
  reading(where, findings, [&] { study.draws = store.draws(name); });
  reading(where, findings, [&] { (void)store.arrays(name); });
  reading(where, findings, [&] { (void)store.rounds(name); });
  if (study.record->config.empty()) return study;  // a study that Optuna made
  reading(where, findings, [&] {
    const ConfigOrigin origin = origin_of(*study.record);
    study.config = parse_config(study.record->config, origin.file, origin.overrides, choice_of(*study.record));
  });
  return study;
}

void check_rows(const ExaminedStore& examined, const ExaminedStudy& study, Findings& findings) {
  const std::string where = place(study.name);
  const std::size_t before = findings.size();
  reading(where, findings, [&] {
    for (const std::string& fault : examined.store.row_faults(study.name)) {
      findings.push_back({Severity::kDamage, where, fault, kGoBack, {}});
    }
  });
  if (!study.rows) return;
  for (const Trial& trial : *study.rows) {
    if (!storage::Store::is_marked(trial)) continue;
    findings.push_back({Severity::kDamage,
                        where,
                        fmt::format("trial {}: its rows are not those that were written (the disk, or another program, "
                                    "changed them); report shows it as FAIL, runs do not go on",
                                    trial.number),
                        kGoBack,
                        {}});
  }
  if (study.config) check_values(study, findings);
  if (findings.size() > before) return;
  findings.push_back(
      {Severity::kOk,
       where,
       fmt::format("{} as they were written: states, epochs, values", counted(study.rows->size(), "trial", "trials")),
       "",
       {}});
}

}  // namespace hfta::engine::doctor
