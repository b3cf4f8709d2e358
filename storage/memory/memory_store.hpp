#pragma once
/// The study store in memory, for simulations and tests: its content is lost when the process ends.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store.hpp"

namespace hfta::storage {

/// The studies that connections (MemoryStore) and marks of holders share; it must outlive both. Thread-safe.
class MemoryStudies {
 public:
  /// `name`: the store's name, in messages and as the folder of states: `<name>.hfta/<study>`. Nothing is made there.
  explicit MemoryStudies(std::filesystem::path name = "memory");
  ~MemoryStudies();
  MemoryStudies(const MemoryStudies&) = delete;
  MemoryStudies& operator=(const MemoryStudies&) = delete;

  /// Another program asks for a trial with these parameters, as Optuna's enqueue_trial does. Returns its number. Throws
  /// Error{kStorage} if there is no such study.
  int enqueue(const std::string& study, const trials::Params& params);

  /// The simulated state of a holder in another process, for tests.
  enum class Fate {
    kBeats,   ///< It lives: each look at its mark shows another beat.
    kHangs,   ///< It is there, but has stopped beating.
    kKilled,  ///< It is known to have ended without letting go.
  };
  /// Gives this fate to all holders that have left marks at the study.
  void befall(const std::string& study, Fate fate);

 private:
  friend class MemoryStore;
  struct Content;
  class Marks;
  class Mark;
  std::unique_ptr<Content> content_;
};

/// A connection; see Store. No program can lock the store, damage it, or read it elsewhere.
class MemoryStore final : public Store {
 public:
  explicit MemoryStore(MemoryStudies& studies) : content_(*studies.content_) {}

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
  void use(const Faults& faults) override { faults_ = &faults; }
  [[nodiscard]] std::optional<Lease> lease(const std::string& study) override;
  [[nodiscard]] std::optional<Lease> take_lease(const std::string& study, const std::optional<Lease>& seen,
                                                const std::string& token, const std::string& holder) override;
  void hold(const std::string& study, const Lease& lease) override { held_[study] = lease; }
  void check_held(const std::string& study) override;
  [[nodiscard]] std::unique_ptr<HolderMarks> marks(const std::string& study) override;
  [[nodiscard]] std::optional<LifeSign> life_sign(const std::string& study, const Lease& lease,
                                                  const Clock& clock) override;
  [[nodiscard]] StatesPlace states(const std::string& study) const override;

 private:
  void wait_at_most(std::optional<std::chrono::milliseconds> /*longest*/) override {}
  /// Throws Error{kBusy} if this connection holds the study by a lease that is not the store's any more.
  void check_lease(const std::string& study) const;
  /// Something is about to be written by this connection.
  void count_write();

  MemoryStudies::Content& content_;
  const Faults* faults_ = nullptr;
  std::map<std::string, Lease> held_;  ///< Leases by study.
  std::uint64_t writes_ = 0;           ///< Writes of this connection
  std::optional<std::uint64_t> seen_;  ///< Writes of other connections, as changed_outside() saw them last
};

}  // namespace hfta::storage
