#pragma once
// Fake CUDA graphs on a CPU: what ATen does in a capture is noted call by call, and a replay repeats the calls on
// the same memory. As with the real ones, nothing is done while it is noted, numbers of the host are frozen, memory
// that a capture took holds nothing before it is replayed, and asking for a number of the data spoils a capture.

#include <atomic>
#include <memory>
#include <string>

#include "fusion/step_graph.hpp"

namespace hfta::fusion::testing {

/// How the captures of a backend go.
struct Captures {
  int tried = 0;
  int to_fail = 0;         ///< So many of the next fail half way.
  std::string starved_op;  ///< The next call of that op within a capture runs out of memory.
  /// How often a lane was used by a second thread before the first was done.
  std::atomic<int> crowded = 0;
};

[[nodiscard]] std::shared_ptr<StepGraphBackend> recording_graphs(std::shared_ptr<Captures> captures);

}  // namespace hfta::fusion::testing
