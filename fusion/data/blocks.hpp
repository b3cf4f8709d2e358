#pragma once
/// A pass over all samples, which may lie in a file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// Calls work(std::span<const T>) with the numbers of the field's `size` samples, in order and some at a time; T is
/// what they are taken for, Field::dtype(): float, double or std::int64_t.
template <typename Work>
void for_each_block(const Field& field, std::int64_t size, const Work& work) {
  const auto all = [&]<typename T>(T) {
    constexpr std::int64_t kNumbers = std::int64_t{1} << 16;
    const std::int64_t most = std::max<std::int64_t>(1, kNumbers / std::max<std::int64_t>(1, field.stride()));
    std::vector<T> block;
    for (std::int64_t begin = 0; begin < size; begin += most) {
      const std::int64_t end = std::min(begin + most, size);
      block.resize(static_cast<std::size_t>((end - begin) * field.stride()));
      field.gather(begin, end, field.dtype(), reinterpret_cast<std::byte*>(block.data()));
      work(std::span<const T>(block));
    }
  };
  switch (field.dtype()) {
    case DType::kFloat32:
      return all(float{});
    case DType::kFloat64:
      return all(double{});
    default:
      return all(std::int64_t{});
  }
}

}  // namespace hfta::fusion
