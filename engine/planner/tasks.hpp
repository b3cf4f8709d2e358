#pragma once
/// A training step as tasks on resources: what the simulator runs.

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

namespace hfta::engine::planner {

/// Things of which a task holds one or several while it runs, and that hold one task at a time: devices, directions of
/// links, ports, and the channel of collectives.
inline constexpr std::size_t kMostResources = 96;
using Resources = std::bitset<kMostResources>;

enum class TaskKind { kForward, kBackward, kTransfer, kPush, kPull, kAllReduce, kUpdate };
/// "forward", "all-reduce".
[[nodiscard]] const char* to_text(TaskKind kind);

struct Task {
  TaskKind kind = TaskKind::kForward;
  int op = 0;
  int device = 0;  ///< Device that it runs on, or that a transfer goes to.
  int from = -1;   ///< Device that a transfer between two devices comes from.
  double seconds = 0;
  Resources holds;         ///< At least one.
  std::vector<int> after;  ///< Tasks that must have ended; all with lower numbers.
  std::vector<int> makes;  ///< Buffers that exist from its begin on.
  std::vector<int> reads;  ///< Buffers that it needs until its end.
};

/// Memory of one device. It is freed when the last task that makes or reads it has ended.
struct Buffer {
  int device = 0;
  double bytes = 0;
};

/// A value type.
struct TaskGraph {
  std::vector<Task> tasks;
  std::vector<Buffer> buffers;
  std::vector<double> resident;  ///< By device: bytes that are held all the time, as weights are.
};

}  // namespace hfta::engine::planner
