#pragma once
/// Progress on standard error: a few lines that are redrawn on a terminal, else one line per round.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "engine/cli/activity.hpp"
#include "engine/events/event.hpp"

namespace hfta::engine {

/// On a terminal it is quiet for the first second and a half, then redraws four times a second at most, and leaves no
/// trace. Where a round, or measuring before it, takes longer than that, it says what devices are at: on a terminal all
/// the time, elsewhere in lines at growing intervals.
class ProgressView final : public EventSink {
 public:
  /// Both must outlive this.
  ProgressView(const Clock& clock, const std::deque<Activity>& activities);
  ~ProgressView() override;
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void take(const Event& event) override;
  /// Takes the status off the terminal and falls silent.
  void clear();

 private:
  void round(const Status& status);
  void note(const std::string& line);
  void watch();
  void tell_activities();
  void draw();
  void erase();
  [[nodiscard]] std::vector<std::string> activity_lines(double least_seconds) const;

  const Clock& clock_;
  const std::deque<Activity>& activities_;
  bool terminal_;
  double began_;
  std::mutex mutex_;  // guards the members below, and what is written
  std::condition_variable changed_;
  bool leaving_ = false;
  double spoke_at_;  ///< Time at which a line was written last, where there is no terminal.
  double silence_;   ///< Seconds without a line after which there is to be one.
  std::optional<Status> last_;
  std::optional<double> drawn_at_;
  std::size_t lines_ = 0;  ///< Number of lines on the terminal now.
  std::thread thread_;
};

}  // namespace hfta::engine
