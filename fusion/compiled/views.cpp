#include "fusion/compiled/views.hpp"

#include <ATen/ATen.h>

#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {

at::Tensor view_of(const cpu::Tensor& tensor, std::byte* buffer) {
  std::byte* const begin = buffer + tensor.offset * size_of(tensor.dtype);
  return at::from_blob(begin, tensor.sizes, tensor.strides, at::TensorOptions().dtype(scalar_type(tensor.dtype)));
}

}  // namespace hfta::fusion
