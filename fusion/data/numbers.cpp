// Numbers where they lie, and arrays of them from files.

#include "fusion/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/element.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/sources.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kBlock = std::int64_t{1} << 16;  // numbers that are looked at together

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) std::reverse(&bytes[i], &bytes[i] + width);
}

// Where element i of the row-major result lies in a column-major file.
class Placement {
 public:
  explicit Placement(const Shape& shape) {
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(shape_), [](auto n) { return n != 1; });
  }

  [[nodiscard]] std::size_t operator()(std::size_t i) const {
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
  Shape shape_;  // without dimensions of 1, which move nothing
};

// A copy of the numbers, row-major, in this machine's order of bytes.
std::shared_ptr<const ByteSource> rearranged(const NumberLayout& layout, const ByteSource& source, std::uint64_t at) {
  const std::size_t width = layout.type.width;
  auto found = std::make_shared<MemorySource>(layout.elements * width);
  source.read(at, found->bytes());
  if (layout.big_endian) swap_bytes(found->bytes(), width);
  if (!layout.fortran_order) return found;
  auto out = std::make_shared<MemorySource>(found->size());
  const Placement placement(layout.shape);
  for (std::size_t i = 0; i < layout.elements; ++i) {
    std::copy_n(found->bytes().data() + placement(i) * width, width, out->bytes().data() + i * width);
  }
  return out;
}

DType dtype_for(NumberType type, Use use) {
  if (use != Use::kNumbers) return DType::kInt64;
  return with_type(type, [](auto stored) { return kFitsFloat<decltype(stored)> ? DType::kFloat32 : DType::kFloat64; });
}

template <typename Stored>
void check_whole(Stored stored, Use use, std::int64_t i, const std::string& place) {
  const char* const label = use == Use::kLabels ? "label " : "";
  const auto value = number_of(stored);
  if constexpr (std::is_integral_v<decltype(value)>) {
    if (std::in_range<std::int64_t>(value)) return;
    fail_at(place, fmt::format("found {}{} at element {}, wanted at most 2^63 - 1", label, value, i));
  } else {
    const auto number = static_cast<double>(value);
    if (std::floor(number) == number && std::abs(number) < 9e15) return;
    fail_at(place,
            fmt::format("found {}{} at element {}, wanted a whole number{}", label, shortest(number), i,
                        use == Use::kLabels ? ", a class; the loss soft_cross_entropy takes probabilities of classes"
                                            : ", as for an integer input of the model or folds.groups"));
  }
}

template <typename Stored>
void check(Stored stored, Use use, std::int64_t i, const std::string& place) {
  if (use != Use::kNumbers) return check_whole(stored, use, i, place);
  const auto number = static_cast<double>(number_of(stored));
  if (!std::isfinite(number)) fail_at(place, fmt::format("found {} at element {}, wanted finite numbers", number, i));
}

void check_all(const Numbers& numbers, Use use, const std::string& place) {
  const NumberType type = numbers.type();
  const bool floating = type.kind == 'f' || type.kind == 'B';
  const bool always_fits = use == Use::kNumbers || type.kind == 'i' || type.width < sizeof(std::int64_t);
  if (!floating && always_fits) return;
  std::vector<std::byte> block;
  for (std::int64_t begin = 0; begin < numbers.size(); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, numbers.size() - begin);
    block.resize(static_cast<std::size_t>(count) * type.width);
    numbers.read(begin, block);
    with_type(type, [&](auto stored) {
      using Stored = decltype(stored);
      for (std::int64_t i = 0; i < count; ++i) check(element<Stored>(block.data(), i), use, begin + i, place);
    });
  }
}

template <typename T>
std::shared_ptr<const ByteSource> copy_of(const std::vector<T>& numbers) {
  return std::make_shared<MemorySource>(std::as_bytes(std::span(numbers)));
}

}  // namespace

std::optional<DType> dtype_of(NumberType type) {
  switch (type.kind) {
    case 'b':
      return DType::kBool;
    case 'B':
      return DType::kBFloat16;
    case 'f':
      return type.width == 2 ? DType::kFloat16 : type.width == 4 ? DType::kFloat32 : DType::kFloat64;
    case 'i':
      return type.width == 1   ? DType::kInt8
             : type.width == 2 ? DType::kInt16
             : type.width == 4 ? DType::kInt32
                               : DType::kInt64;
    default:
      return type.width == 1 ? std::optional(DType::kUInt8) : std::nullopt;
  }
}

Numbers::Numbers(const std::vector<float>& numbers)
    : Numbers(copy_of(numbers), 0, std::ssize(numbers), {'f', sizeof(float)}, DType::kFloat32) {}

Numbers::Numbers(const std::vector<double>& numbers)
    : Numbers(copy_of(numbers), 0, std::ssize(numbers), {'f', sizeof(double)}, DType::kFloat64) {}

Numbers::Numbers(const std::vector<std::int64_t>& numbers)
    : Numbers(copy_of(numbers), 0, std::ssize(numbers), {'i', sizeof(std::int64_t)}, DType::kInt64) {}

Numbers::Numbers(std::shared_ptr<const ByteSource> bytes, std::uint64_t at, std::int64_t size, NumberType type,
                 DType dtype, bool big_endian)
    : bytes_(std::move(bytes)), at_(at), size_(size), type_(type), dtype_(dtype), big_endian_(big_endian) {}

const std::byte* Numbers::memory() const {
  if (bytes_ == nullptr || bytes_->memory() == nullptr) return nullptr;
  return bytes_->memory() + at_;
}

void Numbers::read(std::int64_t begin, std::span<std::byte> out) const {
  if (out.empty()) return;
  bytes_->read(at_ + static_cast<std::uint64_t>(begin) * type_.width, out);
  if (big_endian_) swap_bytes(out, type_.width);
}

void Numbers::check_unchanged() const {
  if (bytes_ != nullptr) bytes_->check_unchanged();
}

StoredArray read_numbers(const NumberLayout& layout, std::shared_ptr<const ByteSource> source, std::uint64_t at,
                         Use use, const std::string& place) {
  const bool swapped = layout.big_endian && layout.type.width > 1;
  const bool in_memory = source->memory() != nullptr;
  const bool rearrange = layout.fortran_order || (swapped && in_memory);
  if (rearrange) {
    source = rearranged(layout, *source, at);
    at = 0;
  }
  const Numbers numbers(std::move(source), at, static_cast<std::int64_t>(layout.elements), layout.type,
                        dtype_for(layout.type, use), swapped && !rearrange);
  check_all(numbers, use, place);
  return {layout.shape, numbers};
}

}  // namespace hfta::fusion
