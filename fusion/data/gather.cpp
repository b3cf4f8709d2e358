// Samples from where they are stored, as a batch has them.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/element.hpp"
#include "fusion/dataset.hpp"
#include "fusion/simd/denormals.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

// Chooses samples, and says where the i-th of them begins among the numbers.
struct Rows {
  const std::int64_t* which;  // nullptr: from `begin` on
  std::int64_t begin;
  const std::int64_t* chosen;  // nullptr: all
  std::int64_t first, step;

  [[gnu::always_inline]] [[nodiscard]] std::int64_t operator()(std::int64_t i) const {
    const std::int64_t asked = which != nullptr ? which[i] : begin + i;
    return first + step * (chosen != nullptr ? chosen[asked] : asked);
  }
};

Rows rows_of(const Field& field, const std::int64_t* which, std::int64_t begin) {
  const SampleRows& rows = field.rows;
  return {which, begin, rows.chosen == nullptr ? nullptr : rows.chosen->data(), rows.first,
          rows.step == 0 ? field.stride() : rows.step};
}

// Converts by way of Meant, so that integers beyond 2^53 are rounded as by a conversion to Field::dtype().
template <typename Stored, typename Meant, typename To>
[[gnu::always_inline]] inline void convert_rows(const std::byte* numbers, const Rows& rows, std::int64_t n,
                                                std::int64_t stride, To* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::byte* const row = numbers + rows(i) * static_cast<std::int64_t>(sizeof(Stored));
    To* const to = out + i * stride;
    for (std::int64_t k = 0; k < stride; ++k) {
      to[k] = static_cast<To>(static_cast<Meant>(number_of(element<Stored>(row, k))));
    }
  }
}

template <typename Number>
void copy_rows(const std::byte* numbers, const Rows& rows, std::int64_t n, std::int64_t stride, Number* out) {
  const std::int64_t bytes = stride * static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * stride, numbers + rows(i) * static_cast<std::int64_t>(sizeof(Number)),
                static_cast<std::size_t>(bytes));
  }
}

template <typename To>
void convert(NumberType type, const std::byte* numbers, const Rows& rows, std::int64_t n, std::int64_t stride,
             std::byte* bytes) {
  auto* const out = reinterpret_cast<To*>(bytes);
  const simd::KeepDenormals keep;
  with_type(type, [&](auto stored) {
    using Stored = decltype(stored);
    using Real = std::conditional_t<kFitsFloat<Stored>, float, double>;
    using Meant = std::conditional_t<std::is_same_v<To, std::int64_t>, std::int64_t, Real>;
    if constexpr (std::is_same_v<Stored, To>) {
      copy_rows<To>(numbers, rows, n, stride, out);
    } else {
      simd::multiversion([&] { convert_rows<Stored, Meant>(numbers, rows, n, stride, out); });
    }
  });
}

void convert(NumberType type, const std::byte* numbers, const Rows& rows, std::int64_t n, std::int64_t stride, DType to,
             std::byte* out) {
  switch (to) {
    case DType::kFloat32:
      return convert<float>(type, numbers, rows, n, stride, out);
    case DType::kFloat64:
      return convert<double>(type, numbers, rows, n, stride, out);
    case DType::kInt64:
      return convert<std::int64_t>(type, numbers, rows, n, stride, out);
    default:
      throw Error(ErrorKind::kInternal, "data: found samples asked for in a type that they are not gathered in");
  }
}

// Reads samples, as they are stored, to `out`, one behind another; neighbours are read at once.
void read_rows(const Numbers& numbers, const Rows& rows, std::int64_t n, std::int64_t stride, std::byte* out) {
  const auto row = static_cast<std::size_t>(stride) * numbers.type().width;
  for (std::int64_t i = 0; i < n;) {
    std::int64_t end = i + 1;
    while (end < n && rows(end) == rows(end - 1) + stride) ++end;
    numbers.read(rows(i), {out + static_cast<std::size_t>(i) * row, static_cast<std::size_t>(end - i) * row});
    i = end;
  }
}

// Blocks are small enough for the caches.
std::int64_t samples_at_once(const Field& field) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 18;
  const std::int64_t sample = field.stride() * static_cast<std::int64_t>(field.data.type().width);
  return std::max<std::int64_t>(1, kBytes / std::max<std::int64_t>(1, sample));
}

void gather_rows(const Field& field, Rows rows, std::int64_t n, DType to, std::byte* out) {
  const NumberType type = field.data.type();
  const std::int64_t stride = field.stride();
  if (const std::byte* const numbers = field.data.memory()) {
    convert(type, numbers, rows, n, stride, to, out);
    return;
  }
  field.data.check_unchanged();
  const std::int64_t most = std::min(n, samples_at_once(field));
  std::vector<std::byte> block(static_cast<std::size_t>(most * stride) * type.width);
  for (std::int64_t begin = 0; begin < n; begin += most) {
    const std::int64_t count = std::min(most, n - begin);
    read_rows(field.data, rows, count, stride, block.data());
    convert(type, block.data(), {nullptr, 0, nullptr, 0, stride}, count, stride, to, out);
    out += count * stride * size_of(to);
    (rows.which != nullptr ? void(rows.which += count) : void(rows.begin += count));
  }
  field.data.check_unchanged();  // a model is given the numbers that were checked when the file was opened
}

}  // namespace

std::int64_t Field::stride() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

bool Field::plain() const {
  return data.memory() != nullptr && rows.chosen == nullptr && rows.first == 0 &&
         (rows.step == 0 || rows.step == stride());
}

void Field::gather(std::span<const std::int64_t> which, DType to, std::byte* out) const {
  gather_rows(*this, rows_of(*this, which.data(), 0), static_cast<std::int64_t>(which.size()), to, out);
}

void Field::gather(std::int64_t begin, std::int64_t end, DType to, std::byte* out) const {
  gather_rows(*this, rows_of(*this, nullptr, begin), end - begin, to, out);
}

void Field::gather_stored(std::int64_t begin, std::int64_t end, std::byte* out) const {
  data.check_unchanged();
  read_rows(data, rows_of(*this, nullptr, begin), end - begin, stride(), out);
}

}  // namespace hfta::fusion
