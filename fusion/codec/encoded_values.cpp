#include "fusion/codec/encoded_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "fusion/codec/codec.hpp"
#include "fusion/codec/format.hpp"
#include "fusion/codec/nonzero.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kPart = 4096;  // most elements of a part; a whole number of blocks
constexpr std::size_t kMostBytes = kPart * sizeof(float) + kPart / codec::kBlock + 2 * codec::kWord;
constexpr std::size_t kLeastSlab = std::size_t{128} << 10, kLargestSlab = std::size_t{4} << 20;

// Calls visit(k, mean, deviation) for n elements, of which the first is the `first` of its value.
template <typename Visit>
inline __attribute__((always_inline)) void for_each_by_channel(const StandardByChannel& by, std::size_t first,
                                                               std::size_t n, Visit visit) {
  const std::size_t channels = by.mean.size();
  for (std::size_t i = 0, c = first % channels; i < n; c = 0) {
    const std::size_t count = std::min(channels - c, n - i);
    const float* const mean = by.mean.data() + c;
    const float* const deviation = by.deviation.data() + c;
    for (std::size_t k = 0; k < count; ++k) visit(i + k, mean[k], deviation[k]);
    i += count;
  }
}

void standardise(const StandardByChannel& by, std::size_t first, std::span<const float> x, float* to) {
  simd::multiversion([&] {
    for_each_by_channel(
        by, first, x.size(), [&](std::size_t k, float mean, float deviation) __attribute__((always_inline)) {
          to[k] = (x[k] - mean) * deviation;
        });
  });
}

void undo(const StandardByChannel& by, std::size_t first, std::span<float> x) {
  simd::multiversion([&] {
    for_each_by_channel(
        by, first, x.size(), [&](std::size_t k, float mean, float deviation) __attribute__((always_inline)) {
          x[k] = x[k] / deviation + mean;
        });
  });
}

// Memory of a thread that encodes a part.
struct Scratch {
  std::array<float, kPart> nonzero;
  std::array<std::uint32_t, mask_words(kPart)> mask;
  std::array<std::byte, kMostBytes> bytes;
};

// The multiple of 2 bound that is nearest to the values' mean, if they are all on one side of 0, as behind a relu:
// taken off, they need a bit less each, and are rounded as before. 0 for others.
float middle_of(std::span<const float> x, float bound) {
  double sum = 0;
  bool positive = true;
  for (const float v : x) {
    sum += static_cast<double>(v);
    positive = positive && v > 0;
  }
  const double step = 2 * static_cast<double>(bound), middle = sum / static_cast<double>(x.size());
  constexpr double kMost = 1 << 20;  // steps: what is many times further away is no whole number of them in float
  return positive && middle < kMost * step ? static_cast<float>(step * std::nearbyint(middle / step)) : 0;
}

// Whether leaving out the zeros saves more than the mask takes.
bool is_sparse(std::size_t nonzero, std::size_t n) { return nonzero < n / 8 * 7; }

// Slabs grow with what is there: few for large values, and little that is not used for small ones.
std::size_t next_slab(std::int64_t held) {
  constexpr std::int64_t kShare = 64;
  return std::clamp(static_cast<std::size_t>(held / kShare), kLeastSlab, kLargestSlab);
}

std::size_t quotient(std::size_t a, std::size_t b) { return (a + b - 1) / b; }  // rounded up

}  // namespace

std::size_t EncodedValues::Parts::in_piece() const { return quotient(piece, kPart); }

std::size_t EncodedValues::Parts::length() const {
  return quotient(quotient(piece, in_piece()), codec::kBlock) * codec::kBlock;
}

std::size_t EncodedValues::Parts::count() const { return n / piece * in_piece() + quotient(n % piece, length()); }

std::size_t EncodedValues::Parts::begin(std::size_t part) const {
  return std::min(n, part / in_piece() * piece + std::min(piece, part % in_piece() * length()));
}

void EncodedValues::begin(std::size_t count) {
  slab_ = used_ = 0;
  values_.resize(count);
}

std::byte* EncodedValues::allocate(std::size_t bytes, Encoded& value) {
  const std::lock_guard lock(mutex_);
  if (bytes <= value.room.size()) {
    std::byte* const at = value.room.data();
    value.room = value.room.subspan(bytes);
    return at;
  }
  if (slab_ < slabs_.size() && slabs_[slab_].bytes - used_ < bytes) {
    ++slab_;
    used_ = 0;
  }
  if (slab_ == slabs_.size()) {
    const std::size_t size = next_slab(held_);
    slabs_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    held_ += static_cast<std::int64_t>(size);
  }
  std::byte* const at = slabs_[slab_].memory.get() + used_;
  used_ += bytes;
  return at;
}

EncodedValues::Part EncodedValues::write_part(std::span<const float> x, float bound, Encoded& value) {
  Scratch scratch;
  const std::size_t mask_bytes = mask_words(x.size()) * sizeof(std::uint32_t);
  // A bound of 0 keeps the sign of a zero, too.
  const std::size_t nonzero = bound > 0 ? take_nonzero(x, scratch.mask.data(), scratch.nonzero.data()) : x.size();
  const bool masked = bound > 0 && is_sparse(nonzero, x.size());
  const std::span<const float> rest = masked ? std::span<const float>(scratch.nonzero.data(), nonzero) : x;
  const float middle = masked ? middle_of(rest, bound) : 0;
  if (middle != 0) {
    for (std::size_t k = 0; k < nonzero; ++k) scratch.nonzero[k] -= middle;
  }
  const std::size_t before = masked ? mask_bytes : 0, bytes = before + fusion::encode(rest, bound, scratch.bytes);
  std::byte* const at = allocate(bytes, value);
  std::memcpy(at, scratch.mask.data(), before);
  std::memcpy(at + before, scratch.bytes.data(), bytes - before);
  return {at, bytes, masked ? nonzero : kAllOfThem, middle};
}

void EncodedValues::read_part(const Part& part, std::span<float> x) {
  if (part.nonzero == kAllOfThem) return fusion::decode({part.at, part.bytes}, x);
  std::array<std::uint32_t, mask_words(kPart)> mask;
  std::array<float, kPart> nonzero;
  const std::size_t mask_bytes = mask_words(x.size()) * sizeof(std::uint32_t);
  std::memcpy(mask.data(), part.at, mask_bytes);
  fusion::decode({part.at + mask_bytes, part.bytes - mask_bytes}, std::span(nonzero).first(part.nonzero));
  if (part.middle != 0) {
    for (std::size_t k = 0; k < part.nonzero; ++k) nonzero[k] += part.middle;
  }
  if (part.nonzero < nonzero.size()) nonzero[part.nonzero] = 0;  // put_nonzero() looks at one more
  put_nonzero(mask.data(), nonzero.data(), x);
}

void EncodedValues::encode(std::size_t i, std::span<const float> x, const EncodeAs& as, Team* team) {
  Encoded& value = values_.at(i);
  value.layout = {x.size(), as.piece};
  value.standard = as.by != nullptr && as.bound > 0;
  value.room = as.room;
  value.parts.resize(value.layout.count());
  share(team, static_cast<std::int64_t>(value.parts.size()), [&](std::int64_t stretch, int) {
    const auto part = static_cast<std::size_t>(stretch), begin = value.layout.begin(part);
    const std::span<const float> own = x.subspan(begin, value.layout.begin(part + 1) - begin);
    if (!value.standard) {
      value.parts[part] = write_part(own, as.bound, value);
      return;
    }
    std::array<float, kPart> standard;
    standardise(*as.by, begin, own, standard.data());
    value.parts[part] = write_part(std::span(standard).first(own.size()), as.bound, value);
  });
}

void EncodedValues::decode(std::size_t i, std::size_t first, std::span<float> x, Team* team,
                           const StandardByChannel* by) const {
  const Encoded& value = values_.at(i);
  const Parts& layout = value.layout;
  const std::size_t first_part = first / layout.piece * layout.in_piece(), end = first + x.size();
  const std::size_t end_part = end == layout.n ? layout.count() : end / layout.piece * layout.in_piece();
  share(team, static_cast<std::int64_t>(end_part - first_part), [&](std::int64_t stretch, int) {
    const std::size_t part = first_part + static_cast<std::size_t>(stretch), begin = layout.begin(part);
    const std::span<float> own = x.subspan(begin - first, layout.begin(part + 1) - begin);
    read_part(value.parts.at(part), own);
    if (value.standard) undo(*by, begin, own);
  });
}

}  // namespace hfta::fusion
