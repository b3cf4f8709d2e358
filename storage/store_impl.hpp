#pragma once
/// What a Store holds. Private to storage/.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/optuna_encoding.hpp"
#include "storage/schema.hpp"
#include "storage/sqlite.hpp"
#include "storage/store.hpp"

namespace hfta::storage {

struct Store::Impl {
  Impl(const std::filesystem::path& path, Mode mode);
  /// What opening does to the file: tables that are missing are made, a write-ahead log is left.
  void prepare(Mode mode);
  /// The name by which this file was run, if that is not the one it was opened by and still names it.
  [[nodiscard]] std::optional<std::filesystem::path> other_home();

  /// Optuna's trial_ids of a study, by trial number, as far as they were needed: Optuna has no index over numbers.
  struct KnownStudy {
    std::int64_t id = 0;
    std::vector<std::int64_t> trial_ids;
    std::map<std::string, OptunaDistribution> distributions;  ///< By parameter.
  };

  [[noreturn]] void fail(const std::string& what) const;
  /// Runs `read`; an error about a row's contents gets the file and the study in front.
  template <typename Read>
  auto reading(const std::string& study, Read read);
  /// Optuna's study_id; nullopt if there is no such study.
  [[nodiscard]] std::optional<std::int64_t> find_study(const std::string& name);
  /// The same; absent is an error.
  [[nodiscard]] std::int64_t study_id(const std::string& name);
  [[nodiscard]] StudyRecord read_study(const std::string& name, std::int64_t id);
  /// True once the file has our tables: a file that only Optuna wrote gets them when it is opened for writing.
  [[nodiscard]] bool has_hfta_tables();
  /// For writing, inside a transaction.
  KnownStudy& known(const std::string& name);
  [[nodiscard]] std::int64_t trial_id(KnownStudy& study, int number);
  /// Enters a trial under the next draw, with its parameters. Inside a transaction.
  void add_draw(KnownStudy& study, std::int64_t trial_id, const trials::Params& params);

  [[nodiscard]] std::optional<Lease> find_lease(const std::string& study);
  /// Throws Error{kBusy} if this object holds the study by a lease that is not the store's any more.
  void check_lease(const std::string& study);

  Connection connection;
  Contents contents;  ///< When it was opened.
  std::map<std::string, KnownStudy> known_studies;
  const Faults* faults = nullptr;
  std::optional<std::int64_t> seen_version;  ///< SQLite's data_version, as changed_outside() saw it last.
  std::map<std::string, Lease> held;         ///< By study.
};

template <typename Read>
auto Store::Impl::reading(const std::string& study, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    // SQLite's own errors name the file already.
    const std::string file = printable(connection.path().string());
    if (std::string(error.what()).rfind(file, 0) == 0) throw;
    throw Error(error.kind(), file + ": study '" + printable(study) + "': " + error.what());
  }
}

}  // namespace hfta::storage
