#pragma once
/// The study store: an Optuna study in SQLite, with our own hfta_* tables beside Optuna's in the same file.
///
/// Everything that happened in a round is written in one transaction; what commit() returned from is durable
/// (rollback journal, synchronous=EXTRA). Other programs (Optuna, its dashboard, hfta-tune report) may read and write
/// the file meanwhile. docs/storage.md describes the tables.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/faults.hpp"
#include "trials/space.hpp"
#include "trials/trial.hpp"

namespace hfta::storage {

/// Number of the layout of the hfta_* tables that this program writes.
inline constexpr int kNewestSchema = 4;

/// A study as a whole.
struct StudyRecord {
  std::string name;
  std::string metric;  ///< Name of what is optimised: val_accuracy, ...
  trials::Goal goal = trials::Goal::kMinimize;
  trials::Space space;      ///< True distributions; Optuna's tables get what Optuna has words for.
  std::string config;       ///< Snapshot of the config's text, as it was read.
  std::string config_json;  ///< The same, normalised: what an edited config is compared with.
  std::vector<int> run_caps;
};

/// A line of `hfta-tune studies`.
struct StudySummary {
  std::string name, metric;
  trials::Goal goal = trials::Goal::kMinimize;
  std::map<std::string, int> counts;  ///< By Optuna's state names; only states that occur.
  std::optional<double> best;
  std::optional<trials::UtcTime> last_change;
};

/// An array of slots as it was opened or changed.
struct ArrayRecord {
  int array = 0;                  ///< 0-based count of arrays of the study.
  std::string device, partition;  ///< partition: the shape-changing parameters, "hidden=64".
  int width = 0, chunk = 0, threads = 0;
  std::string choices_json;  ///< Lowering per op, and how each was come by (measured, remembered, not measured).
};

/// Slot `slot` of `array` trained `trial` in round `round` (study-wide count), bringing it to `epoch`.
struct OccupancyRecord {
  int array = 0, round = 0, slot = 0, trial = 0, epoch = 0;
};

/// Time and width of a round.
struct RoundRecord {
  int round = 0, array = 0, width = 0, occupied = 0;
  double seconds = 0;  ///< Training and evaluation.
};

/// The state of a trial changed.
struct StateChange {
  int trial = 0;  ///< number
  trials::State state = trials::State::kRunning;
  std::optional<double> value;
  std::string reason;
  trials::UtcTime when;
  std::optional<int> round = std::nullopt;  ///< Trial::ended_round; unset: not written.
};

/// What one round writes.
struct Changes {
  struct Epoch {
    int trial = 0;
    trials::EpochRecord record;
    std::optional<double> value;  ///< The study's metric: becomes Optuna's intermediate value at step `epoch`.
  };
  std::vector<std::pair<int, trials::UtcTime>> started;  ///< Trials admitted to a slot for the first time.
  std::vector<Epoch> epochs;                             ///< Written again (resume): replaces the row.
  std::vector<StateChange> states;
  std::vector<ArrayRecord> arrays;  ///< New or changed (resized).
  std::vector<OccupancyRecord> occupancy;
  std::vector<RoundRecord> rounds;
  std::map<int, std::map<std::string, double>> test_metrics;  ///< By trial number.
  [[nodiscard]] bool empty() const;
};

/// A trial that another program has added and nobody has begun, as Optuna's enqueue_trial does: WAITING.
struct EnqueuedTrial {
  int number = 0;
  trials::Params params;  ///< What it is to be tried with; the rest is the sampler's to choose.
};

/// The right of one process to run a study.
struct Lease {
  std::int64_t fence = 0;  ///< From 1; raised by one whenever somebody takes the study.
  std::string token;       ///< Tells this lease from any other, of a deleted study of that name too.
  std::string holder;      ///< For people: "process 4711 on host adele".
  bool operator==(const Lease&) const = default;
};

/// One connection. Not thread-safe. Every failure is an Error{kStorage} that names the file and what to do; where a
/// call says that something is our bug, an Error{kInternal}. A call that throws has written nothing. While another
/// program holds the file, a call waits for up to 10 s (see Patience), then throws Error{kLocked}.
class Store {
 public:
  /// Opens a store; `create` makes the file where it is absent (otherwise absent is an error). A file that is not
  /// SQLite, or SQLite without Optuna's tables, is refused untouched; so is one that a newer hfta-tune wrote. An empty
  /// file is no study, but kCreate makes one of it. kReadOnly never creates and never writes, except that SQLite takes
  /// back what a killed process left half-written; it works on read-only files. The other two walk the file once to see
  /// that it is whole (under 1 s for 10^6 rows), give a file that only Optuna wrote our tables, and lift the tables of
  /// an earlier schema to this one. kExamine is kReadOnly without that exception: what a killed process left
  /// half-written is taken back in a private copy.
  enum class Mode { kCreate, kReadWrite, kReadOnly, kExamine };
  static Store open(const std::filesystem::path& path, Mode mode);
  /// The same, but nullopt where no store has been made yet: no file, or one without tables, which another process is
  /// just making or was killed while making. kCreate goes on from there. `mode` is not kCreate.
  static std::optional<Store> open_if_made(const std::filesystem::path& path, Mode mode);

  /// The file, wherever `path` was a link to. A file with several names (hard links, bind mounts) is opened by the one
  /// by which a study of it was last run, as long as that names it still; a copy is another file. Absolute.
  [[nodiscard]] const std::filesystem::path& path() const;

  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  /// In the order of their making.
  [[nodiscard]] std::vector<StudySummary> studies();
  /// nullopt if there is none of that name. Throws Error{kStorage} if its config is not what was written. A study that
  /// Optuna alone made has an empty config.
  [[nodiscard]] std::optional<StudyRecord> find(const std::string& study);
  /// Throws Error{kStorage} if the name is taken or empty.
  void create(const StudyRecord& study);
  /// Replaces run_caps, config and config_json (raised run_cap on resume), nothing else.
  void update(const StudyRecord& study);

  /// Adds trials as RUNNING with their parameters, in one transaction; returns their numbers, in order. Their draws
  /// count on from the last. `seen_rounds`: Trial::seen_rounds of each. A parameter that is not in the study's space,
  /// or a value that its distribution cannot give, is our bug.
  std::vector<int> add_trials(const std::string& study, const std::vector<trials::Params>& params, trials::UtcTime when,
                              std::optional<int> seen_rounds = std::nullopt);
  /// Trials that wait to be begun, by number, less those that we drew. What stands for no value is given as text.
  [[nodiscard]] std::vector<EnqueuedTrial> enqueued(const std::string& study);
  /// Makes a waiting trial ours: RUNNING with `params`, its draw the next one; or, where `failure` says why it cannot
  /// be tried, FAIL. One transaction. False, and nothing is written, if it waits no more: another program was first.
  [[nodiscard]] bool claim(const std::string& study, int number, const trials::Params& params, trials::UtcTime when,
                           const std::string& failure);
  /// Whether another connection has written to the file since the last call; true the first time. Costs next to
  /// nothing.
  [[nodiscard]] bool changed_outside();
  /// What becomes of trials whose rows are not those that were written, by their digests.
  enum class Damage {
    kRefuse,  ///< Throws Error{kStorage} naming them.
    kMark,    ///< They are FAIL without any number, and the reason says "damaged"; see is_marked().
  };
  /// Whether kMark has marked the trial.
  [[nodiscard]] static bool is_marked(const trials::Trial& trial);
  /// Every trial with its epochs, by number; one snapshot. Trials that Optuna's programs ended, and those of a store of
  /// an earlier schema, have no digest and pass. For trials that Optuna's programs ran, the epochs are the
  /// steps at which they reported, and the only metric is the study's.
  [[nodiscard]] std::vector<trials::Trial> trials(const std::string& study, Damage damage = Damage::kRefuse);
  /// Draw -> number of the trials that we drew (a trial that Optuna added has no draw).
  [[nodiscard]] std::vector<int> draws(const std::string& study);
  /// These two throw Error{kStorage} for rows that are not those that were written, rounds() also for those of its
  /// occupancy.
  [[nodiscard]] std::vector<ArrayRecord> arrays(const std::string& study);
  [[nodiscard]] std::vector<RoundRecord> rounds(const std::string& study);
  [[nodiscard]] std::vector<OccupancyRecord> occupancy(const std::string& study);

  /// While it lives, calls wait only so long for another program that holds the file. `store` must outlive it.
  class Patience {
   public:
    Patience(Store& store, std::chrono::milliseconds longest);
    ~Patience();
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    Store& store_;
  };

  /// Copies the whole file, as it is at one moment, to one that is absent or replaced; other programs may go on
  /// meanwhile. Of the states beside it nothing is copied: see backup.hpp.
  void copy_to(const std::filesystem::path& file);

  /// What lies beside the file that kExamine could not read in place, or leave for others.
  enum class Pending {
    kNothing,
    kHalfWritten,  ///< A journal: a killed program left a transaction half-written, and the next one takes it back.
    kLog,          ///< A write-ahead log, of a program that set the file to that.
  };
  [[nodiscard]] Pending pending() const;
  /// Number of the hfta_* tables' layout; 0: the file has only Optuna's.
  [[nodiscard]] int schema();
  /// The name by which a study of the file was last run, as it was then; nullopt if nobody has.
  [[nodiscard]] std::optional<std::filesystem::path> home();
  /// What SQLite finds wrong with the file's pages, indexes and references, at most some 20 lines.
  struct StructuralFault {
    std::string words;
    bool in_index = false;  ///< Rows are whole; see rebuild_indexes().
  };
  [[nodiscard]] std::vector<StructuralFault> structural_faults();
  /// What is never so in a study's rows, though each of them can be read; at most some of each kind. For faults that
  /// the digests do not tell: rows that no digest is about, or that were never as they should be.
  [[nodiscard]] std::vector<std::string> row_faults(const std::string& study);
  /// Makes the indexes anew from the rows, if the file is whole then; otherwise throws Error{kStorage}, nothing
  /// written.
  void rebuild_indexes();

  /// From now on every commit() reaches the fault "in-transaction" before it is durable. `faults` must outlive this.
  void use(const Faults& faults);
  /// One transaction; all or nothing. What was written before under the same trial and epoch, array, or round and slot
  /// is replaced. A trial's value is stored as Optuna has it: none for FAIL and RUNNING, none where a PRUNED one is
  /// NaN. An unknown trial, and COMPLETE without a number, is our bug.
  void commit(const std::string& study, const Changes& changes);

  /// Who took the study last, whether it runs still or not; nullopt if nobody has. The study need not be there.
  [[nodiscard]] std::optional<Lease> lease(const std::string& study);
  /// Takes the study over from the lease `seen` (nullopt: nobody's) and returns the new one, numbered one higher;
  /// nullopt if somebody else was first. Compare and swap, in one transaction.
  [[nodiscard]] std::optional<Lease> take_lease(const std::string& study, const std::optional<Lease>& seen,
                                                const std::string& token, const std::string& holder);
  /// From now on this object writes to that study (create, update, add_trials, commit) only while `lease` is the one in
  /// the store: each of these looks inside its transaction, and otherwise writes nothing and throws Error{kBusy} naming
  /// the new holder. Without this call, writes ask for no lease.
  void hold(const std::string& study, const Lease& lease);
  /// The same look alone, before something beside the store is written. Throws Error{kBusy}.
  void check_held(const std::string& study);

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `digits.db`, `sqlite:///digits.db`, `sqlite:////abs/digits.db` -> path. Throws Error{kConfig} for other URLs.
[[nodiscard]] std::filesystem::path path_from_url(const std::string& url);

}  // namespace hfta::storage
