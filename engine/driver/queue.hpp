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

  /// REQUIRES that the trial is assigned to a partition, and kReady.
  void push(int draw);
  /// Takes a trial out. REQUIRES that it is in.
  void take(int draw);
  [[nodiscard]] int ready(const std::string& partition) const;
  [[nodiscard]] int ready() const { return total_; }
  /// Those with a trial ready, by name.
  [[nodiscard]] std::vector<std::string> partitions() const;
  /// Epochs to train before the trials' next decisions.
  [[nodiscard]] double work(const std::string& partition) const;
  [[nodiscard]] double work() const;
  /// The first trial of the partition. REQUIRES ready(partition) > 0.
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
