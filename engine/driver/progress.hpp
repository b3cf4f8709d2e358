#pragma once
/// The speed of a run, and the text of its status. Nothing here prints.

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "engine/events/event.hpp"

namespace hfta::engine {

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

/// The whole status as a few lines of at most `columns` characters, for a terminal.
[[nodiscard]] std::vector<std::string> status_lines(const Status& status, int columns);
/// The line; where it has more than `columns` bytes, its beginning and "...".
[[nodiscard]] std::string cut_line(const std::string& line, int columns);

}  // namespace hfta::engine
