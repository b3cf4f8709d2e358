#pragma once
/// A queue of arrays on a machine, under a policy: who gets which accelerators, and how long all of it takes.

#include <vector>

#include "engine/allocation/jobs.hpp"
#include "engine/allocation/policy.hpp"

namespace hfta::engine {

/// The accelerators and the times of a job that ran.
struct Placed {
  DeviceSet set = 0;
  double began = 0, ended = 0;  ///< Seconds.
  double slowdown = 1;          ///< See TimeModel.
};

/// Jobs are placed in their order: one that finds too few free accelerators holds up those behind it, as in MAPA's
/// simulator. One entry per job. Throws Error{kInternal} if the policy chooses accelerators that are not free, or
/// another number than was asked for.
[[nodiscard]] std::vector<Placed> run_queue(const std::vector<Job>& jobs, const TimeModel& model, Policy& policy);

/// Results of several queues under one policy. The slowdowns are those of jobs that are sensitive to
/// bandwidth and have several accelerators.
struct Summary {
  double mean = 1, third_quartile = 1, ninetieth = 1, ninety_fifth = 1, most = 1;  ///< Statistics of the slowdowns.
  double throughput = 0;  ///< Jobs per second, averaged over queues.
};
[[nodiscard]] Summary summary(const std::vector<std::vector<Job>>& queues,
                              const std::vector<std::vector<Placed>>& placed);

/// A value below which that part of all values lies, interpolated linearly; 1 if there are none.
[[nodiscard]] double percentile(std::vector<double> values, double part);

}  // namespace hfta::engine
