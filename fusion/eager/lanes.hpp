#pragma once
/// Streams of a device, on which chunks run beside each other. On a CPU there are none, and all of this is nothing.

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fusion/step_graph.hpp"

namespace hfta::fusion {

/// One stream, with its graphs. Chunks that share one take turns: in_use().
class Lane {
 public:
  Lane(const c10::Device& device, GraphBackend* graphs);

  /// While it lives, the calling thread's work goes to the lane. If it did not already, the lane goes on from where the
  /// thread's stream is, and that stream from where the lane then is.
  class Turn {
   public:
    explicit Turn(const Lane& lane);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::optional<c10::Stream> before_, lane_;
    std::optional<c10::StreamGuard> guard_;
  };

  [[nodiscard]] GraphLane* graphs() const { return graphs_.get(); }  ///< Null where nothing is captured.
  /// Held by whoever works on the lane: what another thread gives the stream meanwhile would become part of a capture.
  [[nodiscard]] std::mutex& in_use() const { return *in_use_; }
  [[nodiscard]] const std::optional<c10::Stream>& stream() const { return stream_; }

 private:
  std::unique_ptr<std::mutex> in_use_ = std::make_unique<std::mutex>();
  std::unique_ptr<GraphLane> graphs_;
  std::optional<c10::Stream> stream_;
};

/// The lanes of an array, which run side by side between fork() and join().
class Lanes {
 public:
  /// `chunks`: that many lanes; up to a limit where they cost memory, as streams and graphs do. `graphs` may be null.
  Lanes(const c10::Device& device, int chunks, GraphBackend* graphs);

  [[nodiscard]] const Lane& of_chunk(int chunk) const {
    return lanes_[static_cast<std::size_t>(chunk) % lanes_.size()];
  }
  /// Every lane goes on from where the calling thread's stream is.
  void fork() const;
  /// That stream goes on from where all lanes are.
  void join() const;
  /// Makes the calling thread's work on a lane, without waiting for anything: for use between fork() and join().
  [[nodiscard]] static c10::OptionalStreamGuard on(const Lane& lane);

 private:
  c10::Device device_;
  std::vector<Lane> lanes_;
};

}  // namespace hfta::fusion
