#pragma once
/// Work of linear layers of c slots beside their products: the bias of each slot's own is added, with the relu behind
/// it where one follows; and the gradients of both. Without torch; C++17.
///
/// Calls are as in slot_kernels.hpp: asynchronous on `stream`, with device pointers, fit for a CUDA graph; not in a
/// build without nvcc. Sums over rows are made in parts, whose number follows from the rows alone.

#include <cstddef>

namespace hfta::fusion::cuda {

/// Sizes of [slots, rows, features], row-major.
struct BiasShape {
  int slots;
  std::size_t rows, features;  ///< rows: of a slot
};

/// y = y + bias, and max(0, that) with `relu`; `bias`: [slots, features].
void add_bias(const BiasShape& shape, const float* bias, bool relu, float* y, void* stream);
void add_bias(const BiasShape& shape, const double* bias, bool relu, double* y, void* stream);

/// Numbers (of the type computed in) that sums in parts take.
[[nodiscard]] std::size_t bias_workspace(const BiasShape& shape);

/// `dbias` [slots, features]: sums of dy over the rows. With `y`, what add_bias() gave with a relu: of dy where y is
/// above 0, which is `dx`, laid out as y; without, both are null.
void add_bias_backward(const BiasShape& shape, const float* dy, const float* y, float* dx, float* dbias,
                       float* workspace, void* stream);
void add_bias_backward(const BiasShape& shape, const double* dy, const double* y, double* dx, double* dbias,
                       double* workspace, void* stream);

}  // namespace hfta::fusion::cuda
