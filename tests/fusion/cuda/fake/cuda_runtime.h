#pragma once
// A fake of CUDA's runtime on one CPU thread, enough for fusion/cuda/*.cu: the threads of a block are contexts that take
// turns at __syncthreads(), blocks run one after another, and device memory is the host's.

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __grid_constant__

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}
};
using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation = 2, cudaErrorLaunchFailure = 719 };
constexpr unsigned cudaStreamNonBlocking = 1;
inline const char* cudaGetErrorString(cudaError_t /*error*/) { return "told to fail"; }

inline dim3 threadIdx, blockIdx, gridDim, blockDim;

namespace fake_cuda {

inline cudaError_t launches = cudaSuccess;  // how they end
inline cudaError_t last_error = cudaSuccess;
inline std::set<const void*> launched;  // kernels, each instance of a template by itself

// Runs `body` as every thread of every block.
class Machine {
 public:
  static void run(dim3 grid, unsigned threads, const std::function<void()>& body) {
    Machine machine(threads, body);
    gridDim = grid;
    blockDim = dim3(threads);
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = dim3(x, y, 0);
        machine.run_block();
      }
    }
  }
  static void sync() {
    Fiber& here = *running_->now_;
    swapcontext(&here.context, &running_->home_);
    threadIdx = dim3(here.thread, 0, 0);
  }

 private:
  static constexpr std::size_t kStack = 1 << 16;
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(kStack);
    unsigned thread = 0;
    bool done = false;
  };

  Machine(unsigned threads, const std::function<void()>& body) : body_(body), fibers_(threads) { running_ = this; }

  static void enter() {
    Machine& machine = *running_;
    machine.body_();
    machine.now_->done = true;
    swapcontext(&machine.now_->context, &machine.home_);
  }

  void run_block() {
    for (unsigned t = 0; t < fibers_.size(); ++t) {
      Fiber& fiber = fibers_[t];
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      fiber.thread = t;
      fiber.done = false;
      makecontext(&fiber.context, &Machine::enter, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (Fiber& fiber : fibers_) {
        if (fiber.done) continue;
        any = true;
        now_ = &fiber;
        threadIdx = dim3(fiber.thread, 0, 0);
        swapcontext(&home_, &fiber.context);
      }
    }
  }

  inline static Machine* running_ = nullptr;
  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  ucontext_t home_{};
  Fiber* now_ = nullptr;
};

template <typename... Parameters, std::size_t... I>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...> /*places*/) {
  kernel(*static_cast<std::remove_const_t<Parameters>*>(arguments[I])...);
}

}  // namespace fake_cuda

inline void __syncthreads() { fake_cuda::Machine::sync(); }  // NOLINT

template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t) {
  if (fake_cuda::launches != cudaSuccess) return fake_cuda::last_error = fake_cuda::launches;
  fake_cuda::launched.insert(reinterpret_cast<const void*>(kernel));
  fake_cuda::Machine::run(grid, block.x, [&] {
    fake_cuda::call(kernel, arguments, std::make_index_sequence<sizeof...(Parameters)>());
  });
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError() { return std::exchange(fake_cuda::last_error, cudaSuccess); }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  static std::uintptr_t made = 0;
  *stream = reinterpret_cast<cudaStream_t>(++made);
  return cudaSuccess;
}
