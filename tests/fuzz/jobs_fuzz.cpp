// Queues of jobs: a text is jobs that a machine of eight can run, or an Error{kConfig}.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "engine/allocation/jobs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const hfta::engine::Job& job :
         hfta::engine::read_jobs({reinterpret_cast<const char*>(data), size}, "fuzzed", 8, {})) {
      if (job.request.devices < 1 || job.request.devices > 8 || !(job.request.seconds > 0)) std::abort();
    }
  } catch (const hfta::Error& error) {
    if (error.kind() != hfta::ErrorKind::kConfig) throw;
  }
  return 0;
}
