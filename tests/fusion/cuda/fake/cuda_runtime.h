#pragma once
// A fake of CUDA's runtime on one CPU thread, enough for fusion/cuda/*.cu: the threads of a block are contexts that
// take turns where they wait for each other, blocks run one after another, and device memory is the host's. Every other
// launch runs blocks and threads from the last to the first: who leans on an order, because a barrier is missing, is
// found out.

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
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
struct alignas(16) [[gnu::may_alias]] uint4 {
  unsigned x, y, z, w;
};
using cudaStream_t = void*;
enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchFailure = 719
};
constexpr unsigned cudaStreamNonBlocking = 1;
inline const char* cudaGetErrorString(cudaError_t /*error*/) { return "told to fail"; }

inline dim3 threadIdx, blockIdx, gridDim, blockDim;

namespace fake_cuda {

inline cudaError_t launches = cudaSuccess;  // how they end
inline cudaError_t last_error = cudaSuccess;
inline std::set<const void*> launched;  // kernels, each instance of a template by itself
inline bool backwards = false;          // how the next launch runs blocks and threads
constexpr unsigned kMostInYAndZ = 65535;  // blocks

// The i-th of n things to be run.
inline unsigned in_order(unsigned i, unsigned n) { return backwards ? n - 1 - i : i; }

// Runs `body` as every thread of every block.
class Machine {
 public:
  static void run(dim3 grid, unsigned threads, const std::function<void()>& body) {
    Machine machine(threads, body);
    gridDim = grid;
    blockDim = dim3(threads);
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = dim3(in_order(x, grid.x), in_order(y, grid.y), in_order(z, grid.z));
          machine.run_block();
        }
      }
    }
  }
  // Waits until every thread of the block that has not ended waits here.
  static void sync() {
    running_->now_->in_barrier = true;
    running_->wait();
  }
  // Waits until every lane of the warp waits here, and returns what they brought. It stays until they all meet again.
  static const std::uint64_t* exchange(unsigned mask, std::uint64_t value) {
    if (mask != 0xffffffffU) throw std::logic_error("the fake knows no parts of warps");
    Warp& warp = running_->warps_[threadIdx.x / kLanes];
    const unsigned meeting = warp.meetings;
    std::uint64_t* const values = warp.values[meeting % 2];
    values[threadIdx.x % kLanes] = value;
    if (++warp.arrived == kLanes) {
      warp.arrived = 0;
      ++warp.meetings;
    } else {
      running_->now_->meeting = &warp.meetings;
      running_->now_->seen = meeting;
      running_->wait();
    }
    return values;
  }

  static constexpr unsigned kLanes = 32;

 private:
  static constexpr std::size_t kStack = 1 << 16;
  struct Fiber {
    ucontext_t context;
    unsigned thread = 0;
    bool done = false, in_barrier = false;
    const unsigned* meeting = nullptr;  // of its warp, for which it waits while that is `seen`
    unsigned seen = 0;

    [[nodiscard]] bool waits() const { return in_barrier || (meeting != nullptr && *meeting == seen); }
  };
  struct Warp {
    std::uint64_t values[2][kLanes];  // of two meetings: who is fast may be in the next before others have left
    unsigned arrived = 0, meetings = 0;
  };

  Machine(unsigned threads, const std::function<void()>& body)
      : body_(body), fibers_(threads), warps_((threads + kLanes - 1) / kLanes) {
    running_ = this;
    while (stacks_.size() < threads) stacks_.emplace_back(new char[kStack]);
  }

  static void enter() {
    Machine& machine = *running_;
    machine.body_();
    machine.now_->done = true;
    swapcontext(&machine.now_->context, &machine.home_);
  }

  void wait() {
    Fiber& here = *now_;
    swapcontext(&here.context, &home_);
    here.meeting = nullptr;
    threadIdx = dim3(here.thread, 0, 0);
  }

  void run_block() {
    for (unsigned t = 0; t < fibers_.size(); ++t) {
      Fiber& fiber = fibers_[t];
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = stacks_[t].get();
      fiber.context.uc_stack.ss_size = kStack;
      fiber.context.uc_link = nullptr;
      fiber.thread = t;
      fiber.done = fiber.in_barrier = false;
      makecontext(&fiber.context, &Machine::enter, 0);
    }
    for (std::size_t left = fibers_.size(); left > 0;) {
      std::size_t ran = 0;
      for (unsigned i = 0; i < fibers_.size(); ++i) {
        Fiber& fiber = fibers_[in_order(i, static_cast<unsigned>(fibers_.size()))];
        if (fiber.done || fiber.waits()) continue;
        ++ran;
        now_ = &fiber;
        threadIdx = dim3(fiber.thread, 0, 0);
        swapcontext(&home_, &fiber.context);
        if (fiber.done) --left;
      }
      if (ran == 0) open_barrier();
    }
  }

  // When nobody can go on: all are in the barrier, or the kernel would never end.
  void open_barrier() {
    for (Fiber& fiber : fibers_) {
      if (!fiber.done && !fiber.in_barrier) throw std::logic_error("lanes of a warp wait for others that do not come");
      fiber.in_barrier = false;
    }
  }

  inline static Machine* running_ = nullptr;
  inline static std::vector<std::unique_ptr<char[]>> stacks_;  // NOLINT(modernize-avoid-c-arrays)
  const std::function<void()>& body_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  ucontext_t home_{};
  Fiber* now_ = nullptr;
};

// What lane `from` of the caller's warp brought; the caller's own where there is no such lane.
template <typename T>
T of_lane(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const std::uint64_t* const words = Machine::exchange(mask, word);
  if (from < Machine::kLanes) std::memcpy(&value, &words[from], sizeof value);
  return value;
}

template <typename... Parameters, std::size_t... I>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...> /*places*/) {
  kernel(*static_cast<std::remove_const_t<Parameters>*>(arguments[I])...);
}

}  // namespace fake_cuda

// NOLINTBEGIN(bugprone-reserved-identifier)
inline void __syncthreads() { fake_cuda::Machine::sync(); }
template <typename T>
T __shfl_sync(unsigned mask, T value, unsigned lane) {
  return fake_cuda::of_lane(mask, value, lane);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, unsigned by) {
  return fake_cuda::of_lane(mask, value, threadIdx.x % fake_cuda::Machine::kLanes ^ by);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by) {
  return fake_cuda::of_lane(mask, value, threadIdx.x % fake_cuda::Machine::kLanes - by);
}
inline unsigned __ballot_sync(unsigned mask, bool yes) {
  const std::uint64_t* const votes = fake_cuda::Machine::exchange(mask, yes ? 1 : 0);
  unsigned all = 0;
  for (unsigned lane = 0; lane < fake_cuda::Machine::kLanes; ++lane) {
    if (votes[lane] != 0) all |= 1U << lane;
  }
  return all;
}
template <typename T>
void __stwb(T* at, T value) {
  *at = value;
}
// The upper word of high:low, shifted.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) << by % 32 >> 32);
}
inline int __clz(unsigned word) { return word == 0 ? 32 : __builtin_clz(word); }
inline int __ffs(unsigned word) { return __builtin_ffs(static_cast<int>(word)); }
// NOLINTEND(bugprone-reserved-identifier)
inline unsigned atomicAdd(unsigned* at, unsigned by) { return std::exchange(*at, *at + by); }

template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t) {
  if (fake_cuda::launches != cudaSuccess) return fake_cuda::last_error = fake_cuda::launches;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > fake_cuda::kMostInYAndZ ||
      grid.z > fake_cuda::kMostInYAndZ) {
    return fake_cuda::last_error = cudaErrorInvalidConfiguration;
  }
  fake_cuda::launched.insert(reinterpret_cast<const void*>(kernel));
  fake_cuda::Machine::run(
      grid, block.x, [&] { fake_cuda::call(kernel, arguments, std::make_index_sequence<sizeof...(Parameters)>()); });
  fake_cuda::backwards = !fake_cuda::backwards;
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError() { return std::exchange(fake_cuda::last_error, cudaSuccess); }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  static std::uintptr_t made = 0;
  *stream = reinterpret_cast<cudaStream_t>(++made);
  return cudaSuccess;
}
