#pragma once
/// Finds what is wrong with a store and with what lies beside it, and repairs what can be repaired.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace hfta::engine {

enum class Severity {
  kOk,      ///< Nothing is wrong.
  kNote,    ///< For information; nothing is lost, and a run can continue.
  kDamage,  ///< Something is lost or wrong, or keeps runs from going on.
};
[[nodiscard]] const char* name_of(Severity severity);

/// One thing that was looked at.
struct Finding {
  Severity severity = Severity::kOk;
  std::string where;   ///< A file, beginning at the store's, or a part of the store.
  std::string found;   ///< What was found, and what it means. Texts from files are printable.
  std::string advice;  ///< What the user can do; "" if nothing needs to be done.
  /// Repairs it and returns what it did; null where nothing is safe. To be called while no runner lives, see repair().
  std::function<std::string()> repair = {};
};

/// All that was looked at.
struct Diagnosis {
  std::filesystem::path store;    ///< Real path of the store's file.
  std::vector<Finding> findings;  ///< Findings in the order of the checks: the file first.
  std::vector<std::string> done;  ///< What repair() did, a line each.

  [[nodiscard]] int count(Severity severity) const;
};

/// Looks at the store `path` and, in it, at `study`, or at every one. Reads only: not even what a killed process left
/// half-written is taken back. A store that cannot be read is a finding. Throws Error{kLocked} if another program holds
/// the file, Error{kStorage} if there is no file, Error{kConfig} if there is no such study.
[[nodiscard]] Diagnosis examine(const std::filesystem::path& path, const std::optional<std::string>& study,
                                const Clock& clock);

/// Repairs what examine() found and can be repaired, and looks again. Before anything is changed the store is copied to
/// `<store>.before-repair`, and every study in question is taken as a run takes it. Throws Error{kBusy} naming the
/// runner of a study that is being run: then nothing is changed. Otherwise as examine().
[[nodiscard]] Diagnosis repair(const std::filesystem::path& path, const std::optional<std::string>& study,
                               const Clock& clock);

/// A diagnosis for people: a line per finding, what was done before them, and the counts.
[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis);
/// A diagnosis as a JSON object: store, findings (severity, where, found, advice, repairable), done, notes, damage.
[[nodiscard]] std::string diagnosis_json(const Diagnosis& diagnosis);

}  // namespace hfta::engine
