#pragma once
/// Queues of arrays to simulate: drawn as in MAPA's mix, or from a file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/allocation/model.hpp"

namespace hfta::engine {

struct Job {
  Request request;
  double arrival = 0;  ///< Seconds; the job does not begin before.
};

/// How much the two kinds of arrays communicate; see Request::communication.
struct Communication {
  double sensitive = 0.1;
  double others = 0.05;
};

/// The mix of MAPA's generator of jobs (SC'21): six networks equally often, four of which are sensitive to bandwidth; 1
/// to 5 accelerators; 5 to 24 seconds; all at once. `machine`: the accelerators that there are; a job wants at most as
/// many. Deterministic.
[[nodiscard]] std::vector<Job> paper_mix(std::uint64_t seed, int count, int machine,
                                         const Communication& communication);

/// A file of MAPA's simulator: a line per job, `devices,pattern,arrival,seconds,sensitive,name`, in the order in which
/// they are placed; `sensitive` is 0, 1, true or false, and only the pattern `ring` is known. Empty lines, and a first
/// one that begins with "numGpus", are left out. Throws Error{kConfig} "file:line: found ..., wanted ...". `text` has
/// at most kMostBytesOfJobs, `machine` as above.
inline constexpr std::size_t kMostBytesOfJobs = std::size_t{1} << 20;
[[nodiscard]] std::vector<Job> read_jobs(std::string_view text, const std::string& file, int machine,
                                         const Communication& communication);

}  // namespace hfta::engine
