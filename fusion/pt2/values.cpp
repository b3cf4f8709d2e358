#include "fusion/pt2/values.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hfta::fusion::pt2 {
namespace {

template <typename T>
T at(const StoredTensor& tensor, std::int64_t i) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  return sign * std::ldexp(0x400 | fraction, exponent - 25);
}

}  // namespace

double Values::operator[](std::int64_t i) const {
  switch (part_of(tensor_.dtype)) {
    case DType::kFloat64:
      return at<double>(tensor_, i);
    case DType::kFloat32:
      return static_cast<double>(at<float>(tensor_, i));
    case DType::kFloat16:
      return from_half(at<std::uint16_t>(tensor_, i));
    case DType::kBFloat16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(at<std::uint16_t>(tensor_, i)) << 16));
    default:
      return 0;
  }
}

}  // namespace hfta::fusion::pt2
