#pragma once
/// Numbers of data as vectors, for comparisons.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fusion/data/sources.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

namespace test {

/// Of a field's `size` samples; T is what they are taken for.
template <typename T>
std::vector<T> values(const Field& field, std::int64_t size) {
  std::vector<T> out(static_cast<std::size_t>(size * field.stride()));
  field.gather(0, size, field.dtype(), reinterpret_cast<std::byte*>(out.data()));
  return out;
}

template <typename T>
std::vector<T> values(const Numbers& numbers) {
  return values<T>(Field{"", {}, numbers}, numbers.size());
}

/// As any kind of numbers; exact up to 2^53.
inline std::vector<double> as_doubles(const Numbers& numbers) {
  const auto from = [](const auto& all) { return std::vector<double>(all.begin(), all.end()); };
  if (numbers.dtype() == DType::kInt64) return from(values<std::int64_t>(numbers));
  return numbers.dtype() == DType::kFloat32 ? from(values<float>(numbers)) : values<double>(numbers);
}

inline std::shared_ptr<const ByteSource> in_memory(const std::string& bytes) {
  return std::make_shared<MemorySource>(std::as_bytes(std::span(bytes)));
}

}  // namespace test

/// The same numbers, taken for the same type; however they are stored.
inline bool operator==(const Numbers& a, const Numbers& b) {
  if (a.dtype() != b.dtype() || a.size() != b.size()) return false;
  if (a.dtype() == DType::kInt64) return test::values<std::int64_t>(a) == test::values<std::int64_t>(b);
  return test::as_doubles(a) == test::as_doubles(b);
}

}  // namespace hfta::fusion
