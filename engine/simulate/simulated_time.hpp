#pragma once
/// Simulated time: a clock that only simulated work moves, and devices that work side by side in it.

#include <cstddef>
#include <vector>

#include "base/clock.hpp"
#include "engine/driver/devices/device_workers.hpp"

namespace hfta::engine {

/// Jobs run at once, in the caller's thread, and say how long they take by spend(); wait() gives the one that ends
/// first and moves the clock there (ties: the lower worker). So a run is a discrete-event simulation, the same every
/// time.
class SimulatedTime final : public Clock, public DeviceWorkers {
 public:
  explicit SimulatedTime(std::size_t workers) : jobs_(workers) {}

  [[nodiscard]] Utc utc() const override;
  [[nodiscard]] double seconds() const override { return now_; }

  [[nodiscard]] std::size_t count() const override { return jobs_.size(); }
  void start(std::size_t worker, std::function<void()> job) override;
  [[nodiscard]] bool busy(std::size_t worker) const override { return jobs_.at(worker).busy; }
  [[nodiscard]] Ended wait() override;

  /// Makes the job at hand take that long; outside of a job it moves the clock.
  void spend(double seconds);

 private:
  struct Job {
    bool busy = false;
    double seconds = 0, ends = 0;
    std::exception_ptr error;
  };
  std::vector<Job> jobs_;
  Job* current_ = nullptr;
  double now_ = 0;
};

}  // namespace hfta::engine
