#pragma once
/// Trials that may go into a slot, by partition.

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/driver/trials/trial_table.hpp"

namespace hfta::engine {

/// Within a partition, trials that have been trained before come first, then earlier draws. No call walks all trials or
/// all partitions, because there may be thousands of either.
class ReadyQueue {
 public:
  explicit ReadyQueue(TrialTable& table) : table_(table) {}

  /// REQUIRES that the trial is assigned to a partition, and kReady.
  void push(int draw);
  /// Removes a trial. REQUIRES that it is in the queue.
  void take(int draw);
  [[nodiscard]] int ready(const std::string& partition) const;
  [[nodiscard]] int ready() const { return total_; }
  /// The earliest draw of all that are ready. REQUIRES ready() > 0.
  [[nodiscard]] int earliest() const { return *draws_.begin(); }
  /// The number of ready draws before `draw`; takes time in proportion to it.
  [[nodiscard]] int ready_before(int draw) const {
    return static_cast<int>(std::distance(draws_.begin(), draws_.lower_bound(draw)));
  }
  /// The number of ready trials in the partition that has the most of them.
  [[nodiscard]] int most_ready() const { return sizes_.empty() ? 0 : *sizes_.rbegin(); }
  /// The `count` partitions with the most work, or all if there are fewer: most work first, ties by name.
  [[nodiscard]] std::vector<std::string> richest(std::size_t count) const;
  /// Epochs to train before the trials' next decisions.
  [[nodiscard]] double work(const std::string& partition) const;
  [[nodiscard]] double work() const { return work_; }
  struct Waiting {
    int trials = 0;
    double epochs = 0;  ///< Epochs to train before their next decisions.
  };
  /// The partition's ready trials that come before `draw`; takes time in proportion to the number of the others.
  [[nodiscard]] Waiting before(int draw, const std::string& partition) const;
  /// The first trial of the partition. REQUIRES ready(partition) > 0.
  [[nodiscard]] int front(const std::string& partition) const;
  /// The partition with most work whose first trial is in the store; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> first_entered() const;
  /// The latest draw among the first `count` trials of the partition. REQUIRES 0 < count <= ready(partition).
  [[nodiscard]] int last_of(const std::string& partition, int count) const;

 private:
  struct Line {
    std::map<int, double> resumed, fresh;  ///< Epochs to train, by draw.
    double work = 0;
    [[nodiscard]] int size() const { return static_cast<int>(resumed.size() + fresh.size()); }
  };
  void enter(const std::string& partition, const Line& line);
  void remove(const std::string& partition, const Line& line);

  TrialTable& table_;
  std::map<std::string, Line> lines_;                ///< Lines by partition; none is empty.
  std::set<std::pair<double, std::string>> ranked_;  ///< (-work, partition) of each line.
  std::set<int> draws_;                              ///< Draws of all lines.
  std::multiset<int> sizes_;                         ///< Number of trials of each line.
  int total_ = 0;
  double work_ = 0;
};

}  // namespace hfta::engine
