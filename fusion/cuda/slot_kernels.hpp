#pragma once
/// CUDA kernels where LibTorch has no good form: the many-slot optimizer and counted dropout. Without torch; C++17.
///
/// A build without nvcc links no_cuda.cpp instead: built() is then false and the rest must not be called. Everything is
/// asynchronous on `stream` (a cudaStream_t); pointers are to device memory. Each throws Error{kDevice} if the launch
/// fails.

#include <cstddef>
#include <cstdint>

#include "fusion/cpu/kernels/optimizer_rule.hpp"

namespace hfta::fusion::cuda {

/// Whether this build has the kernels.
bool built();

/// One parameter of all slots: [slots, n] row-major each; `second` only for adam.
template <typename T>
struct SlotRows {
  T* weight;
  const T* gradient;
  T* first;
  T* second;
  std::size_t n;
  int slots;
};

/// One step of every slot b with occupied[b] != 0; numbers[b] are its own. Equal to the CPU's loops up to contraction.
void sgd(const SlotRows<float>& rows, const SgdNumbers<float>* numbers, const unsigned char* occupied, void* stream);
void sgd(const SlotRows<double>& rows, const SgdNumbers<double>* numbers, const unsigned char* occupied, void* stream);
void adam(const SlotRows<float>& rows, const AdamNumbers<float>* numbers, const unsigned char* occupied, void* stream);
void adam(const SlotRows<double>& rows, const AdamNumbers<double>* numbers, const unsigned char* occupied,
          void* stream);

/// What one slot's mask depends on; as fill_dropout_mask.
struct MaskSource {
  std::uint64_t key, step;
  double keep;  ///< 1 - p, in 0..1
};

/// out: [slots, n]; out[b] is bit for bit what fill_dropout_mask gives for sources[b].
void dropout_masks(float* out, std::size_t n, int slots, const MaskSource* sources, std::uint32_t node, void* stream);
void dropout_masks(double* out, std::size_t n, int slots, const MaskSource* sources, std::uint32_t node, void* stream);

}  // namespace hfta::fusion::cuda
