#pragma once
/// CUDA kernels where LibTorch has no good form: the many-slot optimizer with clipping, counted randomness, a batch's
/// samples. Without torch; C++17.
///
/// A build without nvcc links no_cuda.cpp instead: built() is then false and the rest must not be called. Everything is
/// asynchronous on `stream` (a cudaStream_t) and reads its numbers from device memory when it runs, so that it can be
/// part of a CUDA graph; pointers are to device memory unless said otherwise. Each throws Error{kDevice} if the launch
/// fails, Error{kMemory} if that is for want of memory.

#include <cstddef>
#include <cstdint>

#include "fusion/optimizers/rules.hpp"
#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {

/// Whether this build has the kernels.
bool built();

/// One parameter of all slots: [slots, n] row-major each. States that the optimizer does not have are null.
template <typename T>
struct SlotRows {
  T* weight;
  const T* gradient;
  T* states[kMostStates];
  std::size_t n;
};

/// All parameters of all slots. Few launches whatever their number. `rows` and `groups` are host arrays of `count`, and
/// read before the call returns.
template <typename T>
struct SlotParameters {
  const SlotRows<T>* rows;
  const unsigned short* groups;  ///< By parameter: its group, which selects the slot's numbers.
  int count;
  int slots;
};

/// Numbers of a step by slot.
struct StepNumbers {
  const void* numbers;           ///< [slots, groups]: Numbers<T> of the kind's rule
  const unsigned char* updates;  ///< [slots]; 0: the slot's rows stay as they are
  const double* factors;         ///< [slots]: factors on gradients, by clip_factors. Null: 1.
  int groups;
};

/// Doubles of workspace that clip_factors wants: `slots` of `n[count]` elements each.
std::size_t clip_workspace(const std::size_t* n, int count, int slots);

/// factors[b] = clip_factor(clip_norms[b], squares of b's gradients), 1 where clip_norms[b] is negative: such a slot's
/// gradients are not read. Sums in double and in a fixed order. `workspace`: clip_workspace doubles.
void clip_factors(const SlotParameters<float>& parameters, const double* clip_norms, double* workspace, double* factors,
                  void* stream);
void clip_factors(const SlotParameters<double>& parameters, const double* clip_norms, double* workspace,
                  double* factors, void* stream);

/// One step of every slot that updates. Equal to the CPU's loops, element by element.
void step(OptimizerKind kind, const SlotParameters<float>& parameters, const StepNumbers& numbers, void* stream);
void step(OptimizerKind kind, const SlotParameters<double>& parameters, const StepNumbers& numbers, void* stream);

/// Draws of a kernel: out is [slots, n], and slot b's part a function of (random[b], node, element) alone.
struct Draw {
  const SlotRandom* random;
  int slots;
  std::size_t n;
  std::uint32_t node;
};

/// Dropout's rate in each slot b: rates[b], or `rate` where `rates` is null.
struct Rates {
  const double* rates;
  double rate;
};

/// out[b] is bit for bit what fill_dropout_mask gives.
void dropout_masks(float* out, const Draw& draw, const Rates& rates, void* stream);
void dropout_masks(double* out, const Draw& draw, const Rates& rates, void* stream);
/// out[b] is bit for bit what fill_uniform gives.
void uniforms(float* out, const Draw& draw, void* stream);
void uniforms(double* out, const Draw& draw, void* stream);
/// out[b] is what fill_normal gives, but for the rounding of log and cos.
void normals(float* out, const Draw& draw, void* stream);
void normals(double* out, const Draw& draw, void* stream);

/// Row i of `out` is row order[*begin + i] of `all`, or row *begin + i where `order` is null; i < n. A row is `bytes`
/// long, and one lies behind the other.
void batch_rows(void* out, std::size_t n, const void* all, std::size_t bytes, const std::int64_t* order,
                const std::int64_t* begin, void* stream);

/// Most bytes that store() takes.
constexpr std::size_t kMostStored = 16384;

/// Copies `bytes` bytes of the host to device memory, as arguments of kernels that are read before the call returns. So
/// nothing has to be kept until the device is there, as for a copy from pinned memory, and no copy engine is waited
/// for.
void store(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace hfta::fusion::cuda
