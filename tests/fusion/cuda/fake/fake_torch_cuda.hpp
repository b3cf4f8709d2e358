#pragma once
// What fusion/cuda/graphs.cpp uses of LibTorch's CUDA side, as fakes: graphs, memory pools with their counts of users,
// streams. As in LibTorch 2.11, a pool that is given back once too often ends the process there and is an error here,
// and graphs may not be destroyed while another is captured.

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };

namespace fake_cuda {

/// Where the next capture fails.
enum class Fail { kNowhere, kBegin, kEnd, kInvalid, kInstantiate, kInstantiateMemory };

/// A memory pool's users, as an allocator counts them.
class Pools {
 public:
  void begin(const c10::MempoolId_t& id) {
    ++users_[id];
    allocating_.insert(id);
  }
  void end(const c10::MempoolId_t& id) {
    TORCH_CHECK(allocating_.erase(id) == 1, "endAllocateToPool: nothing is allocated to that pool");
  }
  void release(const c10::MempoolId_t& id) {
    if (--users_[id] < 0) ++given_back_too_often;
  }
  /// No pool has a user, or takes memory.
  [[nodiscard]] bool idle() const {
    for (const auto& [id, users] : users_) {
      if (users != 0) return false;
    }
    return allocating_.empty();
  }

  int given_back_too_often = 0;

 private:
  std::map<c10::MempoolId_t, int> users_;
  std::set<c10::MempoolId_t> allocating_;
};

struct State {
  Fail fail = Fail::kNowhere;
  Pools device, host;
  std::atomic<int> capturing = 0;
  std::atomic<int> destroyed_while_capturing = 0;
  std::atomic<int> captured_at_once = 0;  // captures that began while another went on
  int emptied = 0;                        // caches
  int replayed = 0;                       // graphs
  std::uint64_t pools = 0;
};
inline State state;

}  // namespace fake_cuda

namespace at {

struct HostAllocator {
  static void end_allocate_to_pool(const c10::MempoolId_t& id) { fake_cuda::state.host.end(id); }
  static void release_pool(const c10::MempoolId_t& id) { fake_cuda::state.host.release(id); }
};
inline HostAllocator* getHostAllocator(c10::DeviceType /*type*/) {
  static HostAllocator allocator;
  return &allocator;
}

namespace cuda {

inline c10::MempoolId_t graph_pool_handle() { return {0, ++fake_cuda::state.pools}; }

class CUDAGraph {
 public:
  CUDAGraph() = default;
  CUDAGraph(const CUDAGraph&) = delete;
  CUDAGraph& operator=(const CUDAGraph&) = delete;
  ~CUDAGraph() {
    if (fake_cuda::state.capturing > 0 && !capturing_) ++fake_cuda::state.destroyed_while_capturing;
    if (capturing_) --fake_cuda::state.capturing;
    if (!ended_) return;
    fake_cuda::state.device.release(pool_);
    fake_cuda::state.host.release(pool_);
  }
  void capture_begin(c10::MempoolId_t pool, cudaStreamCaptureMode /*mode*/) {
    pool_ = pool;
    fake_cuda::state.device.begin(pool);
    fake_cuda::state.host.begin(pool);
    TORCH_CHECK(fake_cuda::state.fail != fake_cuda::Fail::kBegin, "cudaStreamBeginCapture");
    capturing_ = true;
    if (fake_cuda::state.capturing++ > 0) ++fake_cuda::state.captured_at_once;
  }
  void capture_end() {
    using fake_cuda::Fail;
    const Fail fail = fake_cuda::state.fail;
    capturing_ = false;
    --fake_cuda::state.capturing;
    TORCH_CHECK(fail != Fail::kEnd, "cudaStreamEndCapture");
    fake_cuda::state.device.end(pool_);
    fake_cuda::state.host.end(pool_);
    TORCH_CHECK(fail != Fail::kInvalid, "Invalid capture.");
    ended_ = true;
    TORCH_CHECK(fail != Fail::kInstantiate, "cudaGraphInstantiate");
    TORCH_CHECK_WITH(OutOfMemoryError, fail != Fail::kInstantiateMemory, "cudaGraphInstantiate");
  }
  [[nodiscard]] c10::MempoolId_t pool() {
    TORCH_CHECK(ended_, "no capture has ended");
    return pool_;
  }
  static void replay() { ++fake_cuda::state.replayed; }

 private:
  c10::MempoolId_t pool_;
  bool capturing_ = false, ended_ = false;
};

}  // namespace cuda
}  // namespace at

#define C10_CUDA_CHECK(call) TORCH_CHECK((call) == cudaSuccess)

namespace c10::cuda {

inline DeviceIndex current_device() { return 0; }
inline void set_device(DeviceIndex /*device*/, bool /*force*/) {}

namespace CUDACachingAllocator {
inline void endAllocateToPool(DeviceIndex /*device*/, const MempoolId_t& id) { fake_cuda::state.device.end(id); }
inline void releasePool(DeviceIndex /*device*/, const MempoolId_t& id) { fake_cuda::state.device.release(id); }
inline void emptyCache() { ++fake_cuda::state.emptied; }
}  // namespace CUDACachingAllocator

class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex /*device*/) {}
};

class CUDAStream {
 public:
  CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  [[nodiscard]] DeviceIndex device_index() const { return device_; }
  [[nodiscard]] Stream unwrap() const {
    return Stream(Stream::UNSAFE, Device(DeviceType::CUDA, device_), reinterpret_cast<StreamId>(stream_));
  }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};
inline CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) { return {stream, device}; }

}  // namespace c10::cuda
