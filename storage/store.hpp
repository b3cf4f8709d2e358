#pragma once
/// The interface of a study store for drivers, reports and simulations, whatever the backend. Each backend has a room
/// (storage/sqlite, storage/memory); storage/stores has the table of those that a URL can name.

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/faults.hpp"
#include "storage/liveness.hpp"
#include "storage/records.hpp"

namespace hfta::storage {

/// The place of the training states of a study; see Checkpoints.
struct StatesPlace {
  std::filesystem::path root;    ///< The user's own folder, in which links are followed; see SystemFiles.
  std::filesystem::path folder;  ///< The study's folder, below it.
};

/// One connection. Not thread-safe; several connections to one store may be used at the same time, in threads and in
/// programs. The results of a round are written in one transaction, which is as durable as the store is when commit()
/// returns. Every failure is an Error{kStorage} that names the store and what to do; if a call's comment says that
/// something is our bug, it is an Error{kInternal}. A call that throws has written nothing. A study that does not exist
/// is an Error{kStorage} that names the nearest one, unless a call says otherwise. While another program locks the
/// store, a call waits for up to 10 s (see Patience), then throws Error{kLocked}.
///
/// Numbers are read back as they were written, NaN and infinities too, except that minus zero becomes zero in metrics.
/// Text of a study's metric and space is UTF-8. tests/storage/contract_test.cpp tests this contract on every store.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // ---- Studies ----

  /// All studies, in the order in which they were created.
  [[nodiscard]] virtual std::vector<StudySummary> studies() = 0;
  /// nullopt if there is none of that name. Throws Error{kStorage} if its config is damaged. A study that
  /// Optuna alone made has an empty config.
  [[nodiscard]] virtual std::optional<StudyRecord> find(const std::string& study) = 0;
  /// Throws Error{kStorage} if the name is taken or empty.
  virtual void create(const StudyRecord& study) = 0;
  /// Replaces run_caps, config and config_json (raised run_cap on resume), nothing else.
  virtual void update(const StudyRecord& study) = 0;

  // ---- Trials ----

  /// Adds trials as RUNNING with their parameters, in one transaction; returns their numbers, in order: each is the
  /// number of trials before it. Their draws continue from the last one. A parameter that is not in the study's space,
  /// or a value that its distribution cannot give, is our bug.
  virtual std::vector<int> add_trials(const std::string& study, const std::vector<NewTrial>& trials,
                                      trials::UtcTime when) = 0;
  /// WAITING trials, by number, without those that we drew. A stored parameter that stands for no value is given as
  /// text.
  [[nodiscard]] virtual std::vector<EnqueuedTrial> enqueued(const std::string& study) = 0;
  /// Takes a waiting trial: it becomes RUNNING with `params` and gets the next draw; or, if `failure` says why it
  /// cannot be tried, FAIL. One transaction. Returns false and writes nothing if the trial is not waiting any more:
  /// another program was first. A number that the study does not have, and parameters as in add_trials, are our bug.
  [[nodiscard]] virtual bool claim(const std::string& study, int number, const trials::Params& params,
                                   trials::UtcTime when, const std::string& failure) = 0;
  /// Whether another connection has written to the store since the last call; true the first time. Cheap.
  /// A write that changes nothing may be missed.
  [[nodiscard]] virtual bool changed_outside() = 0;
  /// How to treat trials whose rows do not match their digests.
  enum class Damage {
    kRefuse,  ///< Throws Error{kStorage} naming them.
    kMark,    ///< They are read as FAIL without any values, and the reason says "damaged"; see is_marked().
  };
  /// Whether kMark has marked the trial.
  [[nodiscard]] static bool is_marked(const trials::Trial& trial);
  /// Every trial with its epochs, by number; one snapshot. Trials that Optuna's programs ended, and those of a store of
  /// an earlier schema, have no digest and pass. For trials that Optuna's programs ran, the epochs are the
  /// steps at which they reported, and the only metric is the study's.
  [[nodiscard]] virtual std::vector<trials::Trial> trials(const std::string& study, Damage damage) = 0;
  /// trials() with Damage::kRefuse.
  [[nodiscard]] std::vector<trials::Trial> trials(const std::string& study) { return trials(study, Damage::kRefuse); }
  /// Draw -> number of the trials that we drew (a trial that Optuna added has no draw). Draws read before trials() are
  /// all among those trials; draws read after them may be newer where another process runs the study.
  [[nodiscard]] virtual std::vector<int> draws(const std::string& study) = 0;

  // ---- Arrays and rounds ----

  /// Arrays by number. This and rounds() throw Error{kStorage} for rows that do not match their digests, rounds() also
  /// for the rows of its occupancy.
  [[nodiscard]] virtual std::vector<ArrayRecord> arrays(const std::string& study) = 0;
  /// Rounds, ordered by round, then array.
  [[nodiscard]] virtual std::vector<RoundRecord> rounds(const std::string& study) = 0;
  /// Occupied slots, ordered by round, array and slot.
  [[nodiscard]] virtual std::vector<OccupancyRecord> occupancy(const std::string& study) = 0;

  /// One transaction; all or nothing. An earlier record of the same trial and epoch, array, round and array,
  /// or round, array and slot is replaced; a trial's test metrics are merged by name. A trial's value is stored as in
  /// Optuna: none for FAIL and RUNNING, and none for PRUNED if it is NaN. An unknown trial, and COMPLETE without a
  /// number, are our bug. Without changes nothing is read or written.
  virtual void commit(const std::string& study, const Changes& changes) = 0;
  /// From now on every commit() reaches the fault "in-transaction" before it is durable. `faults` must outlive this.
  virtual void use(const Faults& faults) = 0;

  // ---- Who runs a study ----

  /// The lease of the process that took the study last, whether it still runs or not; nullopt if none has. The study
  /// need not exist.
  [[nodiscard]] virtual std::optional<Lease> lease(const std::string& study) = 0;
  /// Takes the study over from the lease `seen` (nullopt: no lease) and returns the new lease, numbered one higher;
  /// nullopt if another process was first. Compare and swap, in one transaction.
  [[nodiscard]] virtual std::optional<Lease> take_lease(const std::string& study, const std::optional<Lease>& seen,
                                                        const std::string& token, const std::string& holder) = 0;
  /// From now on this object writes to that study (create, update, add_trials, claim, commit) only while `lease` is the
  /// one in the store: each of these calls checks this inside its transaction; if it is not, the call writes nothing
  /// and throws Error{kBusy} naming the new holder. Without a call of hold(), writes check no lease.
  virtual void hold(const std::string& study, const Lease& lease) = 0;
  /// Makes the check of hold() alone, for use before something besides the store is written. Throws Error{kBusy}.
  virtual void check_held(const std::string& study) = 0;
  /// The marks at a study, for a process that wants to take it; creates the place for marks if it does not exist.
  [[nodiscard]] virtual std::unique_ptr<HolderMarks> marks(const std::string& study) = 0;
  /// The state of the mark that belongs to a lease, for code that only reads: writes nothing, does not wait, throws
  /// nothing. nullopt: there is no mark. `clock` is used to tell how long ago its last beat was.
  [[nodiscard]] virtual std::optional<LifeSign> life_sign(const std::string& study, const Lease& lease,
                                                          const Clock& clock) = 0;

  // ---- The store ----

  /// The place for a study's training states; creates nothing.
  [[nodiscard]] virtual StatesPlace states(const std::string& study) const = 0;

  /// While it lives, calls wait only so long for another program that locks the store. `store` must outlive it.
  class Patience {
   public:
    Patience(Store& store, std::chrono::milliseconds longest) : store_(store) { store_.wait_at_most(longest); }
    ~Patience() { store_.wait_at_most(std::nullopt); }
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    Store& store_;
  };

 protected:
  Store() = default;
  Store(Store&&) noexcept = default;
  Store& operator=(Store&&) noexcept = default;

 private:
  /// nullopt: as long as without Patience.
  virtual void wait_at_most(std::optional<std::chrono::milliseconds> longest) = 0;
};

}  // namespace hfta::storage
