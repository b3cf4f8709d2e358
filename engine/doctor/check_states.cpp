#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "engine/driver/goals/kept_weights.hpp"
#include "engine/report/words.hpp"
#include "storage/checkpoints.hpp"
#include "storage/state_survey.hpp"

namespace hfta::engine::doctor {
namespace {

namespace fs = std::filesystem;
using storage::StateEntry;
using trials::State;
using trials::Trial;
using Kind = StateEntry::Kind;

constexpr const char* kAside = "set-aside";  // a folder in the study's own

/// One of the folders of a study's states.
class StatesCheck {
 public:
  StatesCheck(const ExaminedStudy& study, storage::StateKind kind, Findings& findings)
      : study_(study),
        folder_(study.folder / storage::name_of(kind)),
        goes_on_from_(kind != storage::StateKind::kFinished),
        findings_(findings) {}

  /// Looks at every file; returns the epochs of whole states, by trial.
  std::multimap<int, int> check(const std::set<int>* kept) {
    std::multimap<int, int> whole;
    try {
      for (const StateEntry& entry : storage::survey_states(study_.store.parent_path(), folder_)) {
        largest_ = std::max(largest_, entry.bytes);
        if (entry.kind == Kind::kState) whole.emplace(entry.trial, entry.epoch);
        look_at(entry, kept);
      }
    } catch (const Error& error) {
      findings_.push_back(unreadable(shown(study_.store, folder_), error));
    }
    return whole;
  }
  [[nodiscard]] std::size_t largest() const { return largest_; }

 private:
  void look_at(const StateEntry& entry, const std::set<int>* kept);
  void look_at_state(const StateEntry& entry, const std::set<int>* kept);
  void add(Severity severity, const StateEntry& entry, const std::string& found, const std::string& advice,
           std::function<std::string()> repair = {}) {
    findings_.push_back({severity, shown(study_.store, folder_ / entry.name), found, advice, std::move(repair)});
  }
  void add_needless(const StateEntry& entry, const std::string& found) {
    add(Severity::kNote, entry, found, std::string("the next run removes it, and so does ") + kRepair,
        removal(study_.store, folder_, entry.name));
  }
  void add_unusable(Severity severity, const StateEntry& entry, const std::string& found) {
    add(severity, entry, found, fmt::format("{} moves it to the folder {}", kRepair, kAside),
        [store = study_.store, place = study_.folder, folder = folder_, name = entry.name] {
          const auto from = Folder::find(store.parent_path(), folder);
          if (!from) return std::string("found nothing to move");
          const std::string moved = from->move(name, Folder::make(store.parent_path(), place / kAside));
          return fmt::format("moved {} to {}", shown(store, folder / name), shown(store, place / kAside / moved));
        });
  }

  const ExaminedStudy& study_;
  fs::path folder_;
  bool goes_on_from_;  ///< Trials that are not done continue from the folder's states.
  Findings& findings_;
  std::size_t largest_ = 0;
};

void StatesCheck::look_at(const StateEntry& entry, const std::set<int>* kept) {
  switch (entry.kind) {
    case Kind::kState:
      return look_at_state(entry, kept);
    case Kind::kDamaged:
      return add_unusable(
          goes_on_from_ ? Severity::kNote : Severity::kDamage, entry,
          fmt::format("its bytes are not those of its name{}",
                      goes_on_from_ ? "; the trial goes on from the state before it, or from the start" : ""));
    case Kind::kUnread:
      return add(Severity::kDamage, entry, printable(entry.detail),
                 "look at its permissions and at the disk; without it the trial begins anew");
    case Kind::kTemporary:
      if (study_.is_being_run()) return;  // being written
      if (!entry.detail.empty()) return add_unusable(Severity::kNote, entry, entry.detail + " that a run put aside");
      return add_needless(entry, "a process was killed while it wrote this state");
    case Kind::kUnknown:
      return add(Severity::kNote, entry, "hfta-tune did not write it, and leaves it alone", "move it elsewhere");
    case Kind::kNoFile:
      return add_unusable(
          Severity::kNote, entry,
          fmt::format("found {}, wanted a file; it is passed over, nothing behind it is read", entry.detail));
  }
}

// While a runner lives, its next page may have ended the trial, or been written since the table was read.
void StatesCheck::look_at_state(const StateEntry& entry, const std::set<int>* kept) {
  if (!study_.rows || study_.is_being_run()) return;
  const Trial* trial = study_.trial(entry.trial);
  if (trial != nullptr && storage::Store::is_marked(*trial)) return;
  if (trial == nullptr) return add_unusable(Severity::kNote, entry, "a state of a trial that the store does not have");
  const bool goes_on = ExaminedStudy::goes_on(*trial);
  const int known = trial->epochs.empty() ? 0 : trial->epochs.back().epoch;
  if (entry.epoch > known) {
    return add_unusable(
        Severity::kNote, entry,
        fmt::format("a state after epoch {} of a trial of which the store knows {}: the store was put back "
                    "to an earlier copy; it is not gone on from",
                    entry.epoch, known));
  }
  if (goes_on_from_ && !goes_on) return add_needless(entry, "a state of a trial that has ended");
  if (!goes_on_from_ && kept != nullptr && !goes_on && !kept->contains(entry.trial)) {
    add_needless(entry, "weights of a trial that is not among the best ones that are kept");
  }
}

// The trials whose weights a run keeps. REQUIRES a config and rows.
std::set<int> kept_weights(const ExaminedStudy& study) {
  KeptWeights weights(*study.config);
  int draw = 0;
  for (const Trial* trial : trials::in_order(*study.rows, study.draws)) {
    const int own = draw++;
    if (!ExaminedStudy::goes_on(*trial)) (void)weights.end(own, trial->number, trial->state, trial->values);
  }
  std::set<int> kept;
  for (const int number : study.draws) {
    if (weights.contains(number)) kept.insert(number);
  }
  return kept;
}

void check_weights(const ExaminedStudy& study, const std::set<int>& kept, const std::multimap<int, int>& whole,
                   Findings& findings) {
  for (const int number : kept) {
    if (whole.contains(number)) continue;
    if (was_ended_elsewhere(*study.trial(number), *study.config)) {
      findings.push_back({Severity::kNote,
                          place(study.name),
                          fmt::format("trial {}, one of the best, has no weights: hfta-tune did not end it", number),
                          "",
                          {}});
      continue;
    }
    findings.push_back(
        {Severity::kDamage,
         shown(study.store, study.folder / storage::name_of(storage::StateKind::kFinished)),
         fmt::format("the weights of trial {}, one of the best, are not there or damaged: they cannot be "
                     "exported{}",
                     number, study.trial(number)->test_metrics.empty() ? ", nor tested" : ""),
         "bring the folder back from a backup; otherwise only a new study (--fresh) trains them again",
         {}});
  }
}

// Checks for room for the states of all running trials once more: a new one is written before an old one is removed.
void check_room(const ExaminedStudy& study, std::size_t largest, Findings& findings) {
  if (!study.rows || largest == 0) return;
  const auto go_on = static_cast<std::size_t>(
      std::count_if(study.rows->begin(), study.rows->end(), [](const Trial& t) { return ExaminedStudy::goes_on(t); }));
  const std::optional<std::size_t> room = Folder(study.store.parent_path()).room();
  const std::size_t needed = largest * (go_on + 1);
  if (go_on == 0 || !room || *room >= needed) return;
  findings.push_back({Severity::kNote,
                      shown(study.store, study.folder),
                      fmt::format("{} bytes are free, and the next states of {} may take {}", *room,
                                  counted(go_on, "unfinished trial", "unfinished trials"), needed),
                      "free some space; on a full disk a run ends and can go on later",
                      {}});
}

}  // namespace

void check_states(const ExaminedStore& /*store*/, const ExaminedStudy& study, Findings& findings) {
  std::optional<std::set<int>> kept;
  if (study.config && study.rows) kept = kept_weights(study);
  const std::size_t before = findings.size();
  using storage::StateKind;
  StatesCheck running(study, StateKind::kRunning, findings), copied(study, StateKind::kCopied, findings),
      finished(study, StateKind::kFinished, findings);
  std::multimap<int, int> states = running.check(nullptr);
  states.merge(copied.check(nullptr));
  const std::multimap<int, int> weights = finished.check(kept ? &*kept : nullptr);
  std::error_code error;
  const bool has_folder = fs::exists(study.folder, error);
  if (kept && has_folder && !study.is_being_run()) check_weights(study, *kept, weights, findings);
  check_room(study, std::max({running.largest(), copied.largest(), finished.largest()}), findings);
  if (findings.size() > before) return;
  if (kept && !has_folder && !study.rows->empty()) {
    findings.push_back({Severity::kNote,
                        shown(study.store, study.folder),
                        "there are no states: unfinished trials begin anew, and no weights can be exported",
                        "if the store was copied or moved, bring the folder along",
                        {}});
    return;
  }
  findings.push_back({Severity::kOk,
                      shown(study.store, study.folder),
                      fmt::format("{} and {}, all whole",
                                  counted(states.size(), "state of unfinished trials", "states of unfinished trials"),
                                  counted(weights.size(), "trial's weights", "trials' weights")),
                      "",
                      {}});
}

}  // namespace hfta::engine::doctor
