#pragma once
/// Work of a device noted once and run again: what CUDA calls a graph. A whole training step is then one launch.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hfta::fusion {

/// Work that was noted. What it read and wrote stays where it was: only what lies in that memory changes between runs,
/// and whatever the host had computed is frozen.
class StepGraph {
 public:
  virtual ~StepGraph() = default;
  /// Runs it once more, on the current stream; does not wait.
  virtual void replay() = 0;
};

/// Graphs of one stream. They share memory for what they compute on the way, so only one may run at a time, and nothing
/// computed in one outlives it but what was written to older tensors.
class GraphLane {
 public:
  virtual ~GraphLane() = default;
  /// Notes what `work` asks of the device, on the current stream, without it being done. Throws what `work` throws, and
  /// c10::Error if something in it cannot be noted (it waits for the device, or asks it for a number); then nothing is
  /// left of it. `work` must have been done before, by this thread, so that libraries are warm.
  [[nodiscard]] virtual std::unique_ptr<StepGraph> capture(const std::function<void()>& work) = 0;
  /// The stream that is the lane's alone as long as it lives: no other array's work comes between. Nothing where the
  /// backend has no streams.
  [[nodiscard]] virtual std::optional<c10::Stream> stream() const { return std::nullopt; }
  /// Calls `kernel`, which gives the device work that is no op of LibTorch's.
  virtual void launch(const std::function<void()>& kernel) = 0;
};

/// Makes lanes. Safe to use from several threads.
class GraphBackend {
 public:
  virtual ~GraphBackend() = default;
  [[nodiscard]] virtual std::unique_ptr<GraphLane> open_lane(const c10::Device& device) = 0;
};

/// How training steps of an array were made on a device.
struct StepCounts {
  std::int64_t captured = 0;  ///< Graphs that were made.
  std::int64_t replayed = 0;  ///< Steps that were runs of a graph.
  std::int64_t eager = 0;     ///< Steps op by op: those that warm up, and all that no graph can be made of.
  std::string why_eager;      ///< Why no graph is made, or the last that was tried came to nothing; "" if none was.
};

}  // namespace hfta::fusion
