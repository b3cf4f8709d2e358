#pragma once
/// Bytes in memory that begins where a cache line does: whatever numbers they are, vectors are read from them as from
/// any tensor.

#include <cstddef>
#include <new>
#include <vector>

namespace hfta {

inline constexpr std::size_t kCacheLine = 64;

/// std::allocator, but for the alignment.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;

  CacheLineAllocator() = default;
  template <typename Other>
  CacheLineAllocator(const CacheLineAllocator<Other>& /*other*/) {}

  [[nodiscard]] T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{kCacheLine}));
  }
  void deallocate(T* memory, std::size_t /*n*/) { ::operator delete (memory, std::align_val_t{kCacheLine}); }

  friend bool operator==(const CacheLineAllocator& /*a*/, const CacheLineAllocator& /*b*/) { return true; }
};

using AlignedBytes = std::vector<std::byte, CacheLineAllocator<std::byte>>;

}  // namespace hfta
