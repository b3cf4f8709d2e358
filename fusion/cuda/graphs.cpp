// libhfta_cuda_graphs.so: training steps as CUDA graphs, by LibTorch's own class for them. The only file that includes
// headers of libtorch_cuda.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <memory>
#include <mutex>
#include <utility>

#include "fusion/cuda/graph_module.hpp"

namespace hfta::fusion::cuda {
namespace {

// Memory that graphs of one lane share. It is gone with the last of them, and its name must not be used again then.
struct Pool {
  c10::MempoolId_t id = at::cuda::graph_pool_handle();
};

class CudaStepGraph final : public StepGraph {
 public:
  explicit CudaStepGraph(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}

  void replay() override { graph_.replay(); }

  // Captures by thread: what other threads do to the device meanwhile is their own affair.
  void begin() {
    try {
      graph_.capture_begin(pool_->id, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      forget();
      throw;
    }
  }

  void end() {
    try {
      graph_.capture_end();
    } catch (...) {
      forget();
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

  std::shared_ptr<Pool> pool_;
  at::cuda::CUDAGraph graph_;  // gone before its pool
};

class CudaLane final : public GraphLane {
 public:
  explicit CudaLane(std::shared_ptr<std::mutex> one_at_a_time) : one_at_a_time_(std::move(one_at_a_time)) {}

  std::unique_ptr<StepGraph> capture(const std::function<void()>& work) override {
    const std::lock_guard lock(*one_at_a_time_);
    std::shared_ptr<Pool> pool = pool_.lock();
    if (pool == nullptr) pool = std::make_shared<Pool>();
    auto graph = std::make_unique<CudaStepGraph>(pool);
    try {
      record(*graph, work);
    } catch (const c10::OutOfMemoryError&) {
      // No memory is given back while a capture goes on: make room for another try.
      c10::cuda::CUDACachingAllocator::emptyCache();
      throw;
    }
    pool_ = pool;
    return graph;
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

  std::shared_ptr<std::mutex> one_at_a_time_;
  std::weak_ptr<Pool> pool_;
};

class CudaBackend final : public GraphBackend {
 public:
  std::unique_ptr<GraphLane> open_lane() override { return std::make_unique<CudaLane>(one_at_a_time_); }

 private:
  std::shared_ptr<std::mutex> one_at_a_time_ = std::make_shared<std::mutex>();
};

}  // namespace
}  // namespace hfta::fusion::cuda

extern "C" __attribute__((visibility("default"))) hfta::fusion::GraphBackend* hfta_make_cuda_graphs() {
  return std::make_unique<hfta::fusion::cuda::CudaBackend>().release();
}
