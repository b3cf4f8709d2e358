#pragma once
/// Devices at work side by side: the seam between the driver and threads, or the simulated time of a simulation.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

#include "base/clock.hpp"

namespace hfta::engine {

/// A fixed number of workers, each with at most one job. Used by one thread.
class DeviceWorkers {
 public:
  struct Ended {
    std::size_t worker = 0;
    double seconds = 0;        ///< Duration of the job.
    std::exception_ptr error;  ///< The exception that the job threw.
  };
  virtual ~DeviceWorkers() = default;
  [[nodiscard]] virtual std::size_t count() const = 0;
  /// REQUIRES that the worker has no job.
  virtual void start(std::size_t worker, std::function<void()> job) = 0;
  [[nodiscard]] virtual bool busy(std::size_t worker) const = 0;
  /// Waits until a job has ended, and removes it from its worker. REQUIRES that some worker is busy.
  [[nodiscard]] virtual Ended wait() = 0;
};

/// A thread per worker that lives as long as this does: numeric libraries keep a pool of their own per thread that
/// calls them, which a new thread every round would build anew. With one worker no thread is made: wait() runs the job.
/// Throws Error{kDevice} where a thread cannot be started.
[[nodiscard]] std::unique_ptr<DeviceWorkers> make_threads(std::size_t count, const Clock& clock);

}  // namespace hfta::engine
