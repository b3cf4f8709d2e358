#pragma once
/// Trials that may go into a slot, by partition.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/driver/ledger.hpp"

namespace hfta::engine {

/// Within a partition, trials that were trained before come first, then the earlier draw.
class ReadyQueue {
 public:
  explicit ReadyQueue(Ledger& ledger) : ledger_(ledger) {}

  /// The trial's phase becomes kReady. REQUIRES that entry.partition is set.
  void push(int draw);
  /// The first trial of a partition. REQUIRES ready(partition) > 0.
  int pop(const std::string& partition);
  [[nodiscard]] int ready(const std::string& partition) const;
  [[nodiscard]] int ready() const { return total_; }
  /// Partitions with a trial ready, the one with most trials first (then with most work, then by name).
  [[nodiscard]] std::vector<std::string> fullest_first() const;
  /// Epochs to train before the trials' next decisions.
  [[nodiscard]] double work(const std::string& partition) const;
  [[nodiscard]] double work() const;
  /// A trial of the partition. REQUIRES ready(partition) > 0.
  [[nodiscard]] int front(const std::string& partition) const;

 private:
  struct Line {
    std::set<int> resumed, fresh;
  };
  Ledger& ledger_;
  std::map<std::string, Line> lines_;
  int total_ = 0;
};

}  // namespace hfta::engine
