#pragma once
/// What a run tells about itself while it runs, and the words for it. Nothing here prints.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::engine {

/// An open array of slots.
struct ArrayStatus {
  std::string device, partition;
  int width = 0, occupied = 0;
};

/// The best trial so far; not yet a COMPLETE one perhaps.
struct BestSoFar {
  int number = 0, epoch = 0;
  double value = 0;
  trials::Params params;
};

/// A study after a round. Everything counted here is durable.
struct Status {
  std::string study, metric;
  int round = 0;               ///< Rounds of the study so far.
  std::optional<int> planned;  ///< Trials in all; unset: no limit.
  int complete = 0, pruned = 0, failed = 0;
  int running = 0;                          ///< In a slot.
  int waiting = 0;                          ///< Drawn or paused, in no slot.
  std::int64_t epochs = 0;                  ///< Trial-epochs recorded, all runs together.
  std::optional<std::int64_t> epochs_left;  ///< Trial-epochs to come if no trial fails; unset: no limit.
  double rate = 0;                          ///< Trial-epochs per second of late; 0: unknown.
  double seconds = 0;                       ///< Since this run began.
  std::optional<BestSoFar> best;
  std::vector<ArrayStatus> arrays;
};

/// Where progress goes. Called by the driver's thread only.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// After each round, when the slots that it emptied were filled again.
  virtual void round(const Status& status) = 0;
  /// Something a person should know, one line.
  virtual void note(const std::string& line) = 0;
};

/// Trial-epochs per second over the last half minute.
class RateMeter {
 public:
  /// `seconds` on a steady clock, `epochs` counted since any origin.
  void add(double seconds, std::int64_t epochs);
  /// 0 while unknown.
  [[nodiscard]] double rate() const;

 private:
  std::deque<std::pair<double, std::int64_t>> points_;
};

/// The whole status in one line, for logs.
[[nodiscard]] std::string status_line(const Status& status);

/// The same as a few lines of at most `columns` characters, for a terminal.
[[nodiscard]] std::vector<std::string> status_lines(const Status& status, int columns);

}  // namespace hfta::engine
