#pragma once
// Elements of a tensor of a compiled graph, in row-major order.

#include <cstddef>
#include <cstring>
#include <vector>

#include "fusion/cpu/tensor.hpp"

namespace hfta::fusion::cpu::testing {

/// Calls visit(place) for each element, its place counted from the buffer's begin.
template <typename Visit>
void for_each_element(const Tensor& t, Visit visit) {
  Dims at(t.sizes.size(), 0);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t place = t.offset;
    for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * t.strides[d];
    visit(place);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == t.sizes[d];) at[d] = 0;
  }
}

/// Of type T.
template <typename T>
std::vector<double> values_of(const Tensor& t, const std::byte* buffer) {
  std::vector<double> out;
  for_each_element(
      t, [&](std::int64_t place) { out.push_back(static_cast<double>(reinterpret_cast<const T*>(buffer)[place])); });
  return out;
}

inline std::vector<std::byte> row_major_bytes(const Tensor& t, const std::byte* buffer) {
  const std::int64_t size = size_of(t.dtype);
  std::vector<std::byte> out;
  for_each_element(
      t, [&](std::int64_t place) { out.insert(out.end(), buffer + place * size, buffer + (place + 1) * size); });
  return out;
}

}  // namespace hfta::fusion::cpu::testing
