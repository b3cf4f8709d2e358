#pragma once
/// Device work that is captured once and replayed, as a CUDA graph: a whole training step is then one launch.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hfta::fusion {

/// Captured device work. A replay reads and writes the same addresses; values that the host computed are fixed at
/// capture.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Runs it once more, on the current stream; does not wait.
  virtual void replay() = 0;
};

/// Captures graphs on one stream. The graphs share a memory pool, so only one may run at a time, and only tensors that
/// were allocated before the capture keep the values that a replay wrote to them.
class StepGraphRecorder {
 public:
  virtual ~StepGraphRecorder() = default;
  /// Captures the device work that `work` launches on the current stream; nothing is computed yet. Throws what `work`
  /// throws, and c10::Error if something in it cannot be captured (it waits for the device, or reads a number from it);
  /// nothing of a failed capture remains. This thread must have run `work` before, so that libraries are initialised.
  [[nodiscard]] virtual std::unique_ptr<StepGraph> capture(const std::function<void()>& work) = 0;
  /// Runs `work`, ops on the current stream of which no graph is made, while nobody in the process captures one on a
  /// GPU.
  virtual void run(const std::function<void()>& work) { work(); }
  /// The stream of this recorder, which no other recorder gets. Empty if the backend has no streams.
  [[nodiscard]] virtual std::optional<c10::Stream> stream() const { return std::nullopt; }
  /// Calls `kernel`, which launches work that is not an op of LibTorch.
  virtual void launch(const std::function<void()>& kernel) = 0;
};

/// Makes recorders. Safe to use from several threads.
class StepGraphBackend {
 public:
  virtual ~StepGraphBackend() = default;
  [[nodiscard]] virtual std::unique_ptr<StepGraphRecorder> open_recorder(const c10::Device& device) = 0;
};

/// How training steps of an array ran on a device.
struct StepCounts {
  std::int64_t captured = 0;   ///< Graphs that were made.
  std::int64_t replayed = 0;   ///< Steps that were runs of a graph.
  std::int64_t eager = 0;      ///< Steps op by op: warm-up steps, and all steps that cannot be captured.
  std::string why_eager = {};  ///< Why no graph is made, or why the last capture failed; "" if neither applies.
};

}  // namespace hfta::fusion
