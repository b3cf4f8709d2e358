#pragma once
/// One bracket of successive halving. Internal to search/scheduler.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

/// Decides for the trials of one bracket as Scheduler does for all. Verdicts on a rung are taken when all of its trials
/// have reported or failed: the best go on, ties to the lower trial, at most as many as the next rung has.
class Bracket {
 public:
  /// The first rung has as many trials as draws are in the bracket.
  Bracket(std::vector<Rung> rungs, trials::Goal goal);

  [[nodiscard]] Decision report(int trial, int epoch, double value, std::vector<Verdict>& verdicts);
  void fail(int trial, std::vector<Verdict>& verdicts);
  [[nodiscard]] int target(int trial) const;
  [[nodiscard]] bool failed(int trial) const { return records_.at(trial).failed_at != kNever; }

 private:
  static constexpr int kNever = std::numeric_limits<int>::max();

  // The reports on one trial, and where it stands.
  struct Record {
    std::map<std::size_t, double> values;  // by rung: the value at that rung's last epoch
    int seen = 0;                          // the latest epoch reported
    int failed_at = kNever;                // the epoch it did not survive
    std::size_t rung = 0;                  // the rung that it was let into
    bool stopped = false;
  };

  void check(int trial, int epoch, const Record& record) const;
  [[nodiscard]] std::optional<std::size_t> rung_at(int epoch) const;
  [[nodiscard]] bool ranks(const Record& record, std::size_t rung) const;
  [[nodiscard]] bool completed(const Record& record) const;
  [[nodiscard]] bool awaited(const Record& record) const;
  [[nodiscard]] Decision decide(const Record& record, int epoch) const;
  void settle_if(bool one_fewer, std::vector<Verdict>& verdicts);
  void settle(std::vector<Verdict>& verdicts);

  std::vector<Rung> rungs_;
  trials::Goal goal_;
  std::map<int, Record> records_;  // by trial
  std::size_t current_ = 0;        // the rung being settled
  int pending_;                    // trials that it waits for; in the first rung, those never seen too
};

/// The trial-epochs that the rungs cost if no trial fails: survivors go on from where they stood, so each rung costs
/// only the epochs beyond the one before.
[[nodiscard]] std::int64_t cost_of(const std::vector<Rung>& rungs);

}  // namespace hfta::search
