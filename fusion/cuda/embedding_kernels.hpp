#pragma once
/// Rows of tables, chosen by indices, for c slots with a table each; and the tables' gradients. Without torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Gradients are summed in one order, which follows from a slot's positions alone: a slot's bits
/// depend neither on how many slots there are nor on whether they share their indices.

#include <cstddef>
#include <cstdint>

namespace hfta::fusion::cuda {

/// Lookups in tables [slots, rows, features], row-major.
struct Lookup {
  const std::int64_t* indices;  ///< Slot b has `positions` of them, from b * slot_stride on.
  std::size_t slot_stride;      ///< 0: slots share their indices.
  std::int64_t padding;         ///< Index of a row that gets no gradient; below 0: none.
  int slots;
  std::size_t positions, rows, features;  ///< sizes of one slot
};

/// y [slots, positions, features]: the rows of `tables`; NaN where an index is that of no row.
void embedding(const Lookup& lookup, const float* tables, float* y, void* stream);
void embedding(const Lookup& lookup, const double* tables, double* y, void* stream);

/// dtables [slots, rows, features]: of each row the sum of `dy` [slots, positions, features] over the positions that
/// looked it up. For each 32 rows, 16 in float64, all of a slot's indices are read: meant for some thousands of
/// positions at most.
void embedding_backward(const Lookup& lookup, const float* dy, float* dtables, void* stream);
void embedding_backward(const Lookup& lookup, const double* dy, double* dtables, void* stream);

}  // namespace hfta::fusion::cuda
