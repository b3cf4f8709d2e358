// libhfta_cuda_graphs.so: training steps as CUDA graphs, by LibTorch's own class for them. The only file that includes
// headers of libtorch_cuda.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "fusion/cuda/graph_module.hpp"

namespace hfta::fusion::cuda {
namespace {

// Held while a graph is captured, and while one is destroyed: LibTorch keeps a list of graphs that no lock guards. A
// capture that fails destroys its graph while it is held.
using CaptureMutex = std::recursive_mutex;

// Shared by who runs ops, for a capture alone. All backwards of a device run in one thread of LibTorch's, whose cuDNN
// has streams of its own for grouped convolutions: those that a capture has made part of its graph fail for everybody
// else (CUDNN_STATUS_EXECUTION_FAILED, seen on an H100 with two workers). Taken before CaptureMutex.
using OpsMutex = std::shared_mutex;

// LibTorch's warnings are meant for who wrote the calls: that a recurrent layer's weights do not lie in one piece, that
// an op has no deterministic kernel.
class Quiet final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

// A thread that works on a device: LibTorch itself does not make the first device current, and cuBLAS then complains.
class OnDevice {
 public:
  explicit OnDevice(c10::DeviceIndex device) { c10::cuda::set_device(device, /*force=*/true); }

 private:
  Quiet quiet_;
  c10::WarningUtils::WarningHandlerGuard guard_{&quiet_};
};

// Memory that graphs of one lane share. It is gone with the last of them, and its name must not be used again then.
struct Pool {
  c10::MempoolId_t id = at::cuda::graph_pool_handle();
};

class CudaStepGraph final : public StepGraph {
 public:
  CudaStepGraph(std::shared_ptr<Pool> pool, std::shared_ptr<CaptureMutex> one_at_a_time)
      : one_at_a_time_(std::move(one_at_a_time)), pool_(std::move(pool)), graph_(std::in_place) {}
  ~CudaStepGraph() override {
    const std::lock_guard lock(*one_at_a_time_);
    graph_.reset();
  }
  CudaStepGraph(const CudaStepGraph&) = delete;
  CudaStepGraph& operator=(const CudaStepGraph&) = delete;

  void replay() override { graph_->replay(); }

  // Captures by thread: what other threads do to the device meanwhile is their own affair.
  void begin() {
    try {
      graph_->capture_begin(pool_->id, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      forget();
      throw;
    }
  }

  void end() {
    try {
      graph_->capture_end();
    } catch (...) {
      if (!holds_pool()) forget();
      throw;
    }
  }

  // Ends a capture whose work has thrown. That error matters, not the one that this may lead to.
  void abandon() noexcept {
    try {
      end();
    } catch (...) {
    }
  }

 private:
  // True if the capture ended but instantiation failed: the graph then releases the pool itself.
  [[nodiscard]] bool holds_pool() noexcept {
    try {
      static_cast<void>(graph_->pool());
      return true;
    } catch (...) {
      return false;
    }
  }

  // A capture that CUDA gave up leaves the allocators believing that it goes on.
  void forget() noexcept {
    const auto quietly = [](auto call) {
      try {
        call();
      } catch (...) {
      }
    };
    const c10::DeviceIndex device = c10::cuda::current_device();
    at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
    quietly([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool_->id); });
    quietly([&] { c10::cuda::CUDACachingAllocator::releasePool(device, pool_->id); });
    quietly([&] { host->end_allocate_to_pool(pool_->id); });
    quietly([&] { host->release_pool(pool_->id); });
  }

  std::shared_ptr<CaptureMutex> one_at_a_time_;
  std::shared_ptr<Pool> pool_;
  std::optional<at::cuda::CUDAGraph> graph_;  // gone before its pool
};

// Streams by device that no lane has. LibTorch hands out 32 in turn, so that two lanes may get the same one. Made once
// and kept for the process: LibTorch's allocator remembers streams by their handles.
class Streams {
 public:
  c10::cuda::CUDAStream take(c10::DeviceIndex device) {
    const std::lock_guard lock(mutex_);
    std::vector<c10::cuda::CUDAStream>& idle = idle_[device];
    if (idle.empty()) {
      const c10::cuda::CUDAGuard here(device);
      cudaStream_t stream = nullptr;
      C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      return c10::cuda::getStreamFromExternal(stream, device);
    }
    const c10::cuda::CUDAStream stream = idle.back();
    idle.pop_back();
    return stream;
  }
  void give_back(const c10::cuda::CUDAStream& stream) {
    const std::lock_guard lock(mutex_);
    idle_[stream.device_index()].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::vector<c10::cuda::CUDAStream>> idle_;
};

class CudaLane final : public StepGraphRecorder {
 public:
  CudaLane(std::shared_ptr<OpsMutex> ops, std::shared_ptr<CaptureMutex> one_at_a_time, std::shared_ptr<Streams> streams,
           c10::DeviceIndex device)
      : ops_(std::move(ops)),
        one_at_a_time_(std::move(one_at_a_time)),
        streams_(std::move(streams)),
        stream_(streams_->take(device)) {}
  ~CudaLane() override { streams_->give_back(stream_); }
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  [[nodiscard]] std::optional<c10::Stream> stream() const override { return stream_.unwrap(); }

  std::unique_ptr<StepGraph> capture(const std::function<void()>& work) override {
    const std::lock_guard no_ops(*ops_);
    const std::lock_guard lock(*one_at_a_time_);
    const OnDevice here(stream_.device_index());
    // No memory is given back while a capture goes on, and a step op by op fills the cache again: make room first.
    if (std::exchange(ran_out_, false)) c10::cuda::CUDACachingAllocator::emptyCache();
    std::shared_ptr<Pool> pool = pool_.lock();
    if (pool == nullptr) pool = std::make_shared<Pool>();
    auto graph = std::make_unique<CudaStepGraph>(pool, one_at_a_time_);
    try {
      record(*graph, work);
    } catch (const c10::OutOfMemoryError&) {
      ran_out_ = true;
      throw;
    }
    pool_ = pool;
    return graph;
  }

  void run(const std::function<void()>& work) override {
    const std::shared_lock with_others(*ops_);
    const OnDevice here(stream_.device_index());
    work();
  }

  void launch(const std::function<void()>& kernel) override { kernel(); }

 private:
  static void record(CudaStepGraph& graph, const std::function<void()>& work) {
    graph.begin();
    try {
      work();
    } catch (...) {
      graph.abandon();
      throw;
    }
    graph.end();
  }

  std::shared_ptr<OpsMutex> ops_;
  std::shared_ptr<CaptureMutex> one_at_a_time_;
  std::shared_ptr<Streams> streams_;
  c10::cuda::CUDAStream stream_;
  std::weak_ptr<Pool> pool_;
  bool ran_out_ = false;  // the last capture ran out of memory
};

// An object that all backends of the process share, as what it guards belongs to the process.
template <typename T>
std::shared_ptr<T> of_the_process() {
  static const std::shared_ptr<T> shared = std::make_shared<T>();
  return shared;
}

class CudaBackend final : public StepGraphBackend {
 public:
  std::unique_ptr<StepGraphRecorder> open_recorder(const c10::Device& device) override {
    const c10::DeviceIndex index = device.has_index() ? device.index() : c10::cuda::current_device();
    return std::make_unique<CudaLane>(ops_, one_at_a_time_, streams_, index);
  }

 private:
  std::shared_ptr<OpsMutex> ops_ = of_the_process<OpsMutex>();
  std::shared_ptr<CaptureMutex> one_at_a_time_ = of_the_process<CaptureMutex>();
  std::shared_ptr<Streams> streams_ = of_the_process<Streams>();
};

}  // namespace
}  // namespace hfta::fusion::cuda

extern "C" __attribute__((visibility("default"))) hfta::fusion::StepGraphBackend* hfta_make_cuda_graphs() {
  return std::make_unique<hfta::fusion::cuda::CudaBackend>().release();
}
