#pragma once
/// Placement of buffers in one arena: those that do not live at the same time may share memory.

#include <cstddef>
#include <span>
#include <vector>

namespace hfta::fusion::cpu {

/// Kernels [begin, end), by their position.
struct Lifetime {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] bool empty() const { return begin >= end; }
};

/// A buffer's size, and when it is in use; one that never is has no place.
struct Placed {
  std::size_t bytes = 0;
  Lifetime life;
};

struct Placement {
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> offsets;  ///< By buffer: bytes from the arena's begin.
  std::size_t bytes = 0;             ///< Size of the arena.
};

/// No two buffers that are in use at the same time share a byte. Each goes to the lowest place that is free while it
/// lives; large ones choose first.
[[nodiscard]] Placement place(std::span<const Placed> buffers);

}  // namespace hfta::fusion::cpu
