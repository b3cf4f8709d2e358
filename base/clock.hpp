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

/// A clock that starts at the wall time of its construction and goes on by seconds(): two times that are taken from it
/// differ by what has passed, whatever the wall clock does meanwhile.
class RunClock final : public Clock {
 public:
  /// `clock` must outlive this.
  explicit RunClock(const Clock& clock) : clock_(clock), utc_(clock.utc()), seconds_(clock.seconds()) {}

  [[nodiscard]] Utc utc() const override {
    const std::chrono::duration<double> passed(clock_.seconds() - seconds_);
    return utc_ + std::chrono::duration_cast<std::chrono::microseconds>(passed);
  }
  [[nodiscard]] double seconds() const override { return clock_.seconds(); }

 private:
  const Clock& clock_;
  Utc utc_;
  double seconds_;
};

}  // namespace hfta
