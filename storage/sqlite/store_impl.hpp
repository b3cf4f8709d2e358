#pragma once
/// The members of a SqliteStore. Private to storage/sqlite/.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/rules.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/digest.hpp"
#include "storage/sqlite/schema.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::storage {

/// The message for rows that do not match their digest.
inline constexpr const char* kDamaged =
    "damaged: found other rows than those that were written (the disk, or another program, changed them); keep the "
    "file and go back to a copy of it";

struct SqliteStore::Impl {
  Impl(const std::filesystem::path& path, Mode mode);
  /// Opens the file by the name it was run by; prepare() comes next.
  static std::unique_ptr<Impl> open(const std::filesystem::path& path, Mode mode);
  /// The rest of opening: refuses what is no store, and where `mode` writes, makes or lifts tables and leaves a
  /// write-ahead log.
  void prepare(Mode mode);
  /// The name by which this file was run, if that is not the one it was opened by and still names it.
  [[nodiscard]] std::optional<std::filesystem::path> other_home();
  /// The name by which this file was run, whatever it names now.
  [[nodiscard]] std::optional<std::filesystem::path> home();

  /// Optuna's trial_ids of a study, by trial number, as far as they were needed: Optuna has no index over numbers.
  struct KnownStudy {
    std::int64_t id = 0;
    std::vector<std::int64_t> trial_ids;
    Distributions distributions;
    std::size_t objectives = 1;
  };

  /// The file's name, as messages give it.
  [[nodiscard]] std::string name() const { return printable(connection.path().string()); }
  [[noreturn]] void fail(const std::string& what) const;
  /// Runs `read`; an error about a row's contents gets the file and the study in front.
  template <typename Read>
  auto reading(const std::string& study, Read read);
  /// Optuna's study_id; nullopt if there is no such study.
  [[nodiscard]] std::optional<std::int64_t> find_study(const std::string& name);
  /// Optuna's study_id; a study that does not exist is an error.
  [[nodiscard]] std::int64_t study_id(const std::string& name);
  [[nodiscard]] StudyRecord read_study(const std::string& name, std::int64_t id);
  /// True once the file has our tables: a file that only Optuna wrote gets them when it is opened for writing.
  [[nodiscard]] bool has_hfta_tables();
  /// Whether rows of ours have digests: a file that is opened for reading keeps the tables of an earlier schema.
  [[nodiscard]] bool has_digests() const { return contents == Contents::kHfta; }
  /// The entry of known_studies, for writing, inside a transaction; read anew if the study is another one.
  KnownStudy& known(const std::string& name);
  [[nodiscard]] std::int64_t trial_id(KnownStudy& study, int number);
  /// A row of `trials` that becomes ours.
  struct NewDraw {
    std::int64_t trial_id = 0;
    int number = 0;
    std::string started;  ///< The time as it is stored.
    bool enqueued = false;
    std::optional<int> seen_rounds = std::nullopt;
  };
  /// Enters a trial under the next draw, with its parameters and the digest of both. Inside a transaction.
  void add_draw(KnownStudy& study, const NewDraw& row, const trials::Params& params);

  [[nodiscard]] std::optional<Lease> find_lease(const std::string& study);
  /// Throws Error{kBusy} if this object holds the study by a lease that is not the store's any more.
  void check_lease(const std::string& study);

  Connection connection;
  Contents contents;  ///< Contents of the file when it was opened; after prepare(), as that left them.
  std::map<std::string, KnownStudy> known_studies;
  const Faults* faults = nullptr;
  std::optional<std::int64_t> seen_version;  ///< SQLite's data_version, as changed_outside() saw it last.
  std::map<std::string, Lease> held;         ///< Leases by study.
};

/// Keys of ours among Optuna's trial_system_attributes.
inline constexpr const char* kEnqueuedKey = "hfta:enqueued";
inline constexpr const char* kSeenKey = "hfta:seen_rounds";
inline constexpr const char* kEndRoundKey = "hfta:ended_round";
inline constexpr const char* kCopyKey = "hfta:copy:";  ///< The epoch follows.
/// SQL: whether trial `t` violates a constraint that a program of Optuna's has evaluated: `constraints` has a list of
/// numbers, `constraints:<name>` one; above 0, it is violated. Python's True is 1, and its Infinity, which is not JSON,
/// is written as a number that is infinite. What is no number violates nothing.
inline constexpr const char* kViolates =
    "EXISTS (SELECT 1 FROM (SELECT replace(value_json, 'Infinity', '9e999') AS json FROM trial_system_attributes"
    " WHERE trial_id = t.trial_id AND (\"key\" = 'constraints' OR substr(\"key\", 1, 12) = 'constraints:')) a,"
    " json_each(CASE WHEN json_valid(a.json) AND json_type(a.json) IN ('array', 'integer', 'real', 'true') THEN a.json"
    " ELSE '[]' END) e WHERE e.type IN ('integer', 'real', 'true') AND e.value > 0)";
/// The key of ours among Optuna's study_system_attributes: see progress_to_json().
inline constexpr const char* kProgressKey = "hfta:progress";

/// The digest of a row of hfta_occupancy: round, array, slot, trial_id, epoch.
inline Digest digest_of_slot(std::int64_t study_id, const Query& row) {
  return Digest::of(Part::kSlot, study_id, row.integer(0), row.integer(1), row.integer(2), row.integer(3),
                    row.integer(4));
}
/// The digest of a row of trial_values.
inline Digest digest_of_value(std::int64_t trial_id, std::int64_t objective, const std::optional<double>& value,
                              std::string_view type) {
  return objective == 0 ? Digest::of(Part::kValue, trial_id, value, type)
                        : Digest::of(Part::kOther, trial_id, objective, value, type);
}
/// The digest of a row of hfta_rounds: round, array, width, occupied, seconds.
inline Digest digest_of_round(std::int64_t study_id, const Query& row) {
  return Digest::of(Part::kRound, study_id, row.integer(0), row.integer(1), row.integer(2), row.integer(3),
                    row.real(4));
}

template <typename Read>
auto SqliteStore::Impl::reading(const std::string& study, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    // SQLite's own errors name the file already.
    const std::string file = name();
    if (std::string(error.what()).rfind(file, 0) == 0) throw;
    throw Error(error.kind(), file + ": study '" + printable(study) + "': " + error.what());
  }
}

}  // namespace hfta::storage
