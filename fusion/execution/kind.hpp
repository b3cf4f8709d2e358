#pragma once
/// A row of the table of executors (fusion/executors): what is known about one way to run before an array exists.

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "fusion/execution/executor.hpp"
#include "fusion/lowering.hpp"

namespace hfta::fusion {

/// The array that candidates are wanted for.
struct CandidateQuestion {
  const Graph& graph;
  const Recipe& recipe;
  c10::Device device;
  int width = 1;    ///< Of the widest array.
  int threads = 1;  ///< Cores; on a GPU groups that may be under way side by side.
};

/// Groups of `chunk` slots, dealt to as many threads as the question allows.
[[nodiscard]] Lowering in_groups_of(int chunk, const CandidateQuestion& question);

struct ExecutorKind {
  const char* name;
  /// True if this executor can run the lowering on this device; the first match in executor_kinds() is used. `graphs`
  /// may be null.
  bool (*runs)(const Lowering& lowering, const c10::Device& device, const StepGraphBackend* graphs);
  /// Throws Error{kConfig} naming an op that cannot be run so, or what of the lowering does not fit.
  std::unique_ptr<Executor> (*make)(const ExecutorModel& model, const Lowering& lowering);
  /// Lowerings that are worth timing, most promising first; none where the graph cannot be run so.
  std::vector<Lowering> (*candidates)(const CandidateQuestion& question);
};

}  // namespace hfta::fusion
