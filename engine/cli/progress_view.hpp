#pragma once
/// Progress on standard error: a few lines that are redrawn on a terminal, else one line per round.

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "engine/driver/progress.hpp"

namespace hfta::engine {

/// On a terminal it is quiet for the first two seconds, then redraws four times a second at most, and leaves no trace.
class ProgressView final : public ProgressSink {
 public:
  /// `clock` must outlive this.
  explicit ProgressView(const Clock& clock);
  ~ProgressView() override;
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void round(const Status& status) override;
  void note(const std::string& line) override;
  /// Takes the status off the terminal.
  void clear();

 private:
  const Clock& clock_;
  bool terminal_;
  double began_;
  std::optional<double> drawn_at_;
  std::size_t lines_ = 0;  ///< On the terminal now.
};

}  // namespace hfta::engine
