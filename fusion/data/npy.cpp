#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <type_traits>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/npy_header.hpp"

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
  explicit Placement(const NpyHeader& header) : row_major_(!header.fortran_order) {
    std::copy_if(header.shape.begin(), header.shape.end(), std::back_inserter(shape_), [](auto n) { return n != 1; });
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

template <typename From>
double as_double(From value) {
  if constexpr (std::is_same_v<From, Half>) {
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
std::vector<To> converted(const NpyHeader& header, const std::byte* data, Use use, const std::string& place) {
  const Placement placement(header);
  std::vector<To> out(header.elements);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const From value = element<From>(data, placement(i), header.big_endian);
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
Numbers numbers_of(const NpyHeader& header, const std::byte* data, Use use, const std::string& place) {
  constexpr bool kFitsFloat = std::is_same_v<From, float> || sizeof(From) <= 2;
  using Real = std::conditional_t<kFitsFloat, float, double>;
  if (use != Use::kNumbers) return converted<From, std::int64_t>(header, data, use, place);
  return converted<From, Real>(header, data, use, place);
}

Numbers numbers_by_type(const NpyHeader& header, const std::byte* data, Use use, const std::string& place) {
  switch (header.kind) {
    case 'f':
      if (header.width == 2) return numbers_of<Half>(header, data, use, place);
      if (header.width == 4) return numbers_of<float>(header, data, use, place);
      return numbers_of<double>(header, data, use, place);
    case 'i':
      if (header.width == 1) return numbers_of<std::int8_t>(header, data, use, place);
      if (header.width == 2) return numbers_of<std::int16_t>(header, data, use, place);
      if (header.width == 4) return numbers_of<std::int32_t>(header, data, use, place);
      return numbers_of<std::int64_t>(header, data, use, place);
    default:  // unsigned, and booleans as 0 and 1
      if (header.width == 1) return numbers_of<std::uint8_t>(header, data, use, place);
      if (header.width == 2) return numbers_of<std::uint16_t>(header, data, use, place);
      if (header.width == 4) return numbers_of<std::uint32_t>(header, data, use, place);
      return numbers_of<std::uint64_t>(header, data, use, place);
  }
}

}  // namespace

void fail_at(const std::string& place, const std::string& message) {
  throw Error(ErrorKind::kConfig, place + (place.empty() ? "" : ": ") + message);
}

std::uint64_t bytes_in_memory(const NpyHeader& header, Use use) {
  const bool as_float = use == Use::kNumbers && (header.width <= 2 || (header.kind == 'f' && header.width == 4));
  return header.elements * (as_float ? sizeof(float) : sizeof(double));
}

StoredArray parse_npy(std::span<const std::byte> bytes, Use use, const std::string& place) {
  const NpyHeader header = parse_npy_header(bytes, place);
  const std::size_t wanted = header.elements * header.width;
  const std::size_t found = bytes.size() - header.size;
  if (found != wanted) {
    fail_at(place,
            fmt::format("found {} bytes of numbers, wanted {} for shape {}", found, wanted, to_text(header.shape)));
  }
  return {header.shape, numbers_by_type(header, bytes.data() + header.size, use, place)};
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path, const std::string& place) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail_at(place, "found no file '" + printable(path.string()) + "'");
  if (!std::filesystem::is_regular_file(status))
    fail_at(place, "found '" + printable(path.string()) + "', wanted a file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes(error ? 0 : size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (error || !in) fail_at(place, "cannot read '" + printable(path.string()) + "'");
  return bytes;
}

}  // namespace hfta::fusion
