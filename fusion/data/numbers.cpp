#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "fusion/data/array_file.hpp"

namespace hfta::fusion {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are taken from files as they lie there");

struct Half {
  std::uint16_t bits;
};

float to_float(Half half) {
  const float sign = (half.bits & 0x8000) != 0 ? -1.0F : 1.0F;
  const int exponent = (half.bits >> 10) & 31;
  const auto fraction = static_cast<float>(half.bits & 1023);
  if (exponent == 31) return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

// Where element i of the row-major result lies in a column-major file.
class Placement {
 public:
  explicit Placement(const NumberLayout& layout) : row_major_(!layout.fortran_order) {
    std::copy_if(layout.shape.begin(), layout.shape.end(), std::back_inserter(shape_), [](auto n) { return n != 1; });
  }

  [[nodiscard]] std::size_t operator()(std::size_t i) const {
    if (row_major_) return i;
    std::size_t place = 0;
    std::size_t rest = i;
    std::size_t below = 1;
    for (const std::int64_t size : shape_) below *= static_cast<std::size_t>(size);
    std::size_t step = 1;
    for (const std::int64_t size : shape_) {
      below /= static_cast<std::size_t>(size);
      place += rest / below * step;
      rest %= below;
      step *= static_cast<std::size_t>(size);
    }
    return place;
  }

 private:
  Shape shape_;  // less dimensions of one, which move nothing
  bool row_major_;
};

template <typename From>
From element(const std::byte* data, std::size_t i, bool big_endian) {
  std::array<std::byte, sizeof(From)> raw;
  std::memcpy(raw.data(), data + i * sizeof(From), sizeof(From));
  if (big_endian) std::reverse(raw.begin(), raw.end());
  return std::bit_cast<From>(raw);
}

struct Bfloat16 {
  std::uint16_t bits;
};

float to_float(Bfloat16 number) { return std::bit_cast<float>(static_cast<std::uint32_t>(number.bits) << 16); }

template <typename From>
double as_double(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, Bfloat16>) {
    return static_cast<double>(to_float(value));
  } else {
    return static_cast<double>(value);
  }
}

template <typename From>
std::int64_t as_integer(From value, Use use, const std::string& place, std::size_t i) {
  const char* label = use == Use::kLabels ? "label " : "";
  if constexpr (std::is_integral_v<From>) {
    if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
    fail_at(place, fmt::format("found {}{} at element {}, wanted at most 2^63 - 1", label, value, i));
  } else {
    const double number = as_double(value);
    if (std::floor(number) == number && std::abs(number) < 9e15) return static_cast<std::int64_t>(number);
    fail_at(place, fmt::format("found {}{} at element {}, wanted a whole number{}", label, shortest(number), i,
                               use == Use::kLabels ? "" : ", which this input of the model takes"));
  }
}

template <typename From, typename To>
std::vector<To> converted(const NumberLayout& layout, const std::byte* data, Use use, const std::string& place) {
  const Placement placement(layout);
  std::vector<To> out(layout.elements);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const From value = element<From>(data, placement(i), layout.big_endian);
    if constexpr (std::is_same_v<To, std::int64_t>) {
      out[i] = as_integer(value, use, place, i);
    } else {
      const double number = as_double(value);
      if (!std::isfinite(number))
        fail_at(place, fmt::format("found {} at element {}, wanted finite numbers", number, i));
      out[i] = static_cast<To>(number);
    }
  }
  return out;
}

template <typename From>
Numbers numbers_of(const NumberLayout& layout, const std::byte* data, Use use, const std::string& place) {
  constexpr bool kFitsFloat = std::is_same_v<From, float> || sizeof(From) <= 2;
  using Real = std::conditional_t<kFitsFloat, float, double>;
  if (use != Use::kNumbers) return converted<From, std::int64_t>(layout, data, use, place);
  return converted<From, Real>(layout, data, use, place);
}

Numbers numbers_by_type(const NumberLayout& layout, const std::byte* data, Use use, const std::string& place) {
  switch (layout.kind) {
    case 'f':
      if (layout.width == 2) return numbers_of<Half>(layout, data, use, place);
      if (layout.width == 4) return numbers_of<float>(layout, data, use, place);
      return numbers_of<double>(layout, data, use, place);
    case 'B':
      return numbers_of<Bfloat16>(layout, data, use, place);
    case 'i':
      if (layout.width == 1) return numbers_of<std::int8_t>(layout, data, use, place);
      if (layout.width == 2) return numbers_of<std::int16_t>(layout, data, use, place);
      if (layout.width == 4) return numbers_of<std::int32_t>(layout, data, use, place);
      return numbers_of<std::int64_t>(layout, data, use, place);
    default:  // unsigned, and booleans as 0 and 1
      if (layout.width == 1) return numbers_of<std::uint8_t>(layout, data, use, place);
      if (layout.width == 2) return numbers_of<std::uint16_t>(layout, data, use, place);
      if (layout.width == 4) return numbers_of<std::uint32_t>(layout, data, use, place);
      return numbers_of<std::uint64_t>(layout, data, use, place);
  }
}

}  // namespace

std::uint64_t bytes_in_memory(const NumberLayout& layout, Use use) {
  const bool as_float = use == Use::kNumbers && (layout.width <= 2 || (layout.kind == 'f' && layout.width == 4));
  return layout.elements * (as_float ? sizeof(float) : sizeof(double));
}

StoredArray read_numbers(const NumberLayout& layout, std::span<const std::byte> bytes, Use use,
                         const std::string& place) {
  return {layout.shape, numbers_by_type(layout, bytes.data(), use, place)};
}

}  // namespace hfta::fusion
