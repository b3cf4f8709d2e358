#pragma once
/// The seam for time. Everything that reads a clock takes one of these.

#include <chrono>

namespace hfta {

/// Thread-safe.
class Clock {
 public:
  using Utc = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;
  virtual ~Clock() = default;
  /// Wall time, for people to read; may jump.
  [[nodiscard]] virtual Utc utc() const = 0;
  /// Seconds on a clock that only goes forward, from an arbitrary origin; for durations.
  [[nodiscard]] virtual double seconds() const = 0;
};

/// The machine's own clocks.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  }
  [[nodiscard]] double seconds() const override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

}  // namespace hfta
