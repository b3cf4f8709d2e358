#pragma once
/// Streams of a device, on which chunks run side by side. On a CPU there are none, and all of this does nothing.

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// The calling thread's stream.
[[nodiscard]] c10::Stream current_stream(const c10::Device& device);

/// One stream, with what captures graphs on it. Chunks that share a stream take turns, by in_use().
class PooledStream {
 public:
  PooledStream(const c10::Device& device, StepGraphBackend* graphs);

  /// While it lives, the calling thread's work goes to this stream. On entry the stream waits for the thread's own one,
  /// on exit the other way round; neither, where they are the same.
  class Scope {
   public:
    explicit Scope(const PooledStream& stream);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::optional<c10::Stream> before_, stream_;
    std::optional<c10::StreamGuard> guard_;
  };

  [[nodiscard]] StepGraphRecorder* graphs() const { return graphs_.get(); }  ///< Null if nothing is captured.
  /// Held by the thread that uses the stream: work that another thread launched meanwhile would become part of a
  /// capture.
  [[nodiscard]] std::mutex& in_use() const { return *in_use_; }
  [[nodiscard]] const std::optional<c10::Stream>& stream() const { return stream_; }

 private:
  std::unique_ptr<std::mutex> in_use_ = std::make_unique<std::mutex>();
  std::unique_ptr<StepGraphRecorder> graphs_;
  std::optional<c10::Stream> stream_;
};

/// The streams of an array, which run side by side between fork() and join().
class StreamPool {
 public:
  /// One for each of `chunks`, up to a limit where they cost memory, as streams and graphs do. `graphs` may be null.
  StreamPool(const c10::Device& device, int chunks, StepGraphBackend* graphs);

  [[nodiscard]] const PooledStream& of_chunk(int chunk) const {
    return streams_[static_cast<std::size_t>(chunk) % streams_.size()];
  }
  /// Every stream waits for the calling thread's.
  void fork() const;
  /// The calling thread's stream waits for all of them.
  void join() const;
  /// Sends the calling thread's work to a stream, without waiting for anything: for use between fork() and join().
  [[nodiscard]] static c10::OptionalStreamGuard on(const PooledStream& stream);

 private:
  c10::Device device_;
  std::vector<PooledStream> streams_;
};

}  // namespace hfta::fusion
