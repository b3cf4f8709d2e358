#pragma once
/// The study store in a file: an Optuna study in SQLite, with our own hfta_* tables beside Optuna's in the same file.
///
/// Everything that happened in a round is written in one transaction; what commit() returned from is durable
/// (rollback journal, synchronous=EXTRA). Other programs (Optuna, its dashboard, hfta-tune report) may read and write
/// the file meanwhile. docs/storage.md describes the tables.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store.hpp"

namespace hfta::storage {

/// Number of the layout of the hfta_* tables that this program writes.
inline constexpr int kNewestSchema = 4;

/// A connection to a store's file; see Store. Errors name the file. What only a file has comes first and last here.
class SqliteStore final : public Store {
 public:
  /// Opens a store; `create` makes the file where it is absent (otherwise absent is an error). A file that is not
  /// SQLite, or SQLite without Optuna's tables, is refused untouched; so is one that a newer hfta-tune wrote. An empty
  /// file is no study, but kCreate makes one of it. kReadOnly never creates and never writes, except that SQLite takes
  /// back what a killed process left half-written; it works on read-only files. The other two walk the file once to see
  /// that it is whole (under 1 s for 10^6 rows), give a file that only Optuna wrote our tables, and lift the tables of
  /// an earlier schema to this one. kExamine is kReadOnly without that exception: what a killed process left
  /// half-written is taken back in a private copy.
  enum class Mode { kCreate, kReadWrite, kReadOnly, kExamine };
  static SqliteStore open(const std::filesystem::path& path, Mode mode);
  /// open(), but nullopt where no store has been made yet: no file, or one without tables, which another process is
  /// just making or was killed while making. kCreate goes on from there. `mode` is not kCreate.
  static std::optional<SqliteStore> open_if_made(const std::filesystem::path& path, Mode mode);

  /// The file, wherever `path` was a link to. A file with several names (hard links, bind mounts) is opened by the one
  /// by which a study of it was last run, as long as that names it still; a copy is another file. Absolute.
  [[nodiscard]] const std::filesystem::path& path() const;

  ~SqliteStore() override;
  SqliteStore(SqliteStore&&) noexcept;
  SqliteStore& operator=(SqliteStore&&) noexcept;

  // ---- Store ----

  using Store::trials;
  [[nodiscard]] std::vector<StudySummary> studies() override;
  [[nodiscard]] std::optional<StudyRecord> find(const std::string& study) override;
  void create(const StudyRecord& study) override;
  void update(const StudyRecord& study) override;
  std::vector<int> add_trials(const std::string& study, const std::vector<NewTrial>& trials,
                              trials::UtcTime when) override;
  [[nodiscard]] std::vector<EnqueuedTrial> enqueued(const std::string& study) override;
  [[nodiscard]] bool claim(const std::string& study, int number, const trials::Params& params, trials::UtcTime when,
                           const std::string& failure) override;
  [[nodiscard]] bool changed_outside() override;
  [[nodiscard]] std::vector<trials::Trial> trials(const std::string& study, Damage damage) override;
  [[nodiscard]] std::vector<int> draws(const std::string& study) override;
  [[nodiscard]] std::vector<ArrayRecord> arrays(const std::string& study) override;
  [[nodiscard]] std::vector<RoundRecord> rounds(const std::string& study) override;
  [[nodiscard]] std::vector<OccupancyRecord> occupancy(const std::string& study) override;
  void commit(const std::string& study, const Changes& changes) override;
  void use(const Faults& faults) override;
  [[nodiscard]] std::optional<Lease> lease(const std::string& study) override;
  [[nodiscard]] std::optional<Lease> take_lease(const std::string& study, const std::optional<Lease>& seen,
                                                const std::string& token, const std::string& holder) override;
  void hold(const std::string& study, const Lease& lease) override;
  void check_held(const std::string& study) override;
  /// Marks are the locked files `<file>.hfta/<study>/lease.<token>` in which a thread counts beats; see
  /// holder_file.hpp.
  [[nodiscard]] std::unique_ptr<HolderMarks> marks(const std::string& study) override;
  [[nodiscard]] std::optional<LifeSign> life_sign(const std::string& study, const Lease& lease,
                                                  const Clock& clock) override;
  /// `<file>.hfta/<study>`, below the file's folder.
  [[nodiscard]] StatesPlace states(const std::string& study) const override;

  // ---- The file ----

  /// Copies the whole file, as it is at one moment, to one that is absent or replaced; other programs may go on
  /// meanwhile. Of the states beside it nothing is copied: see backup.hpp.
  void copy_to(const std::filesystem::path& file);

  /// Work of a killed program, or a log, beside the file that kExamine could not read in place.
  enum class Pending {
    kNothing,
    kHalfWritten,  ///< A journal: a killed program left a transaction half-written, and the next one takes it back.
    kLog,          ///< A write-ahead log, of a program that set the file to that.
  };
  [[nodiscard]] Pending pending() const;
  /// Number of the hfta_* tables' layout; 0: the file has only Optuna's.
  [[nodiscard]] int schema();
  /// The name by which a study of the file was last run, as it was then; nullopt if no study was run.
  [[nodiscard]] std::optional<std::filesystem::path> home();
  /// A fault that SQLite finds in the file's pages, indexes or references; some 20 are found at most.
  struct StructuralFault {
    std::string words;
    bool in_index = false;  ///< Rows are whole; see rebuild_indexes().
  };
  [[nodiscard]] std::vector<StructuralFault> structural_faults();
  /// Contradictions in a study's rows, though each of them can be read; at most some of each kind. For faults that the
  /// digests do not show: in rows that no digest covers, or that were never as they should be.
  [[nodiscard]] std::vector<std::string> row_faults(const std::string& study);
  /// Makes the indexes anew from the rows, if the file is whole then; otherwise throws Error{kStorage}, nothing
  /// written.
  void rebuild_indexes();

 private:
  struct Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  void wait_at_most(std::optional<std::chrono::milliseconds> longest) override;

  std::unique_ptr<Impl> impl_;
};

/// Examples of the URL of a file, for messages.
inline constexpr const char* kSqliteUrls =
    "a file such as digits.db, sqlite:///digits.db or sqlite:////absolute/digits.db";
/// `digits.db`, `sqlite:///digits.db`, `sqlite:////abs/digits.db` -> path. Throws Error{kConfig} for other URLs.
[[nodiscard]] std::filesystem::path path_from_url(const std::string& url);

}  // namespace hfta::storage
