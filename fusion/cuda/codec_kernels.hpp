#pragma once
/// The codec of saved activations (fusion/codec/codec.hpp) on a GPU, all slots in one launch. Without torch; C++17.
///
/// See slot_kernels.hpp: a build without nvcc links no_cuda.cpp, pointers are to device memory, and everything is
/// asynchronous on `stream` and may be part of a CUDA graph: nothing is allocated, nothing waits for the device, and
/// numbers are read when it runs. Each throws Error{kDevice} if a launch fails, Error{kMemory} if that is for want of
/// memory.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion::cuda {

/// Values of all slots: [slots, n] row-major. Rows that lie at multiples of 16 bytes are read and written faster.
template <typename Float>
struct SlotValues {
  Float* x;
  std::size_t n;
  int slots;
};

/// Encoded bytes of all slots: slot b's begin at bytes + b * stride. Both are multiples of 4.
template <typename Byte>
struct SlotBytes {
  Byte* bytes;
  std::size_t stride;
};

/// Words of workspace that encode_slots and decode_slots want. What it holds before and after does not matter; two
/// calls that may run at the same time need one each.
std::size_t codec_workspace(std::size_t n, int slots);

/// Writes of each slot b the bytes that encode() writes for its values and bounds[b], and to sizes[b] how many they
/// are. Of a slot that needs more than `stride` bytes only the first `stride` are written, and sizes[b] is more than
/// `stride`: it cannot be decoded. A stride of most_encoded_bytes(n), rounded up to a multiple of 4, is enough for all.
void encode_slots(const SlotValues<const float>& values, const float* bounds, const SlotBytes<unsigned char>& out,
                  std::uint64_t* sizes, std::uint64_t* workspace, void* stream);

/// The values that decode() gives, to the bit. Bytes that no encoder wrote give some values or other: a block that says
/// to have more than 32 bits has 32, and what would lie beyond a slot's `stride` bytes is zero. Nothing outside of
/// them is read, and nothing but the values and the workspace is written.
void decode_slots(const SlotBytes<const unsigned char>& bytes, const SlotValues<float>& values,
                  std::uint64_t* workspace, void* stream);

}  // namespace hfta::fusion::cuda
