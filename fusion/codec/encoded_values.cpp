#include "fusion/codec/encoded_values.hpp"

#include <algorithm>
#include <cstring>

#include "fusion/codec/codec.hpp"
#include "fusion/codec/format.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kPart = 4096;  // most elements of a part; a whole number of blocks
constexpr std::size_t kLeastSlab = std::size_t{128} << 10, kLargestSlab = std::size_t{4} << 20;

std::size_t scratch_of_thread() { return most_encoded_bytes(kPart); }

// Slabs grow with what is there: few for large values, and little that is not used for small ones.
std::size_t next_slab(std::int64_t held) {
  constexpr std::int64_t kShare = 16;
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

void EncodedValues::begin(std::size_t count, int threads) {
  slab_ = used_ = 0;
  values_.resize(count);
  scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(std::max(threads, 1)) * scratch_of_thread()));
}

std::byte* EncodedValues::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
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

void EncodedValues::encode(std::size_t i, std::span<const float> x, std::size_t piece, float bound, Team* team) {
  Encoded& value = values_.at(i);
  value.layout = {x.size(), piece};
  value.parts.resize(value.layout.count());
  share(team, static_cast<std::int64_t>(value.parts.size()), [&](std::int64_t stretch, int thread) {
    const auto part = static_cast<std::size_t>(stretch), begin = value.layout.begin(part);
    const auto own =
        std::span(scratch_).subspan(static_cast<std::size_t>(thread) * scratch_of_thread(), scratch_of_thread());
    const std::size_t bytes = fusion::encode(x.subspan(begin, value.layout.begin(part + 1) - begin), bound, own);
    std::byte* const at = allocate(bytes);
    std::memcpy(at, own.data(), bytes);
    value.parts[part] = {at, bytes};
  });
}

void EncodedValues::decode(std::size_t i, std::size_t first, std::span<float> x, Team* team) const {
  const Encoded& value = values_.at(i);
  const Parts& layout = value.layout;
  const std::size_t first_part = first / layout.piece * layout.in_piece(), end = first + x.size();
  const std::size_t end_part = end == layout.n ? layout.count() : end / layout.piece * layout.in_piece();
  share(team, static_cast<std::int64_t>(end_part - first_part), [&](std::int64_t stretch, int) {
    const std::size_t part = first_part + static_cast<std::size_t>(stretch), begin = layout.begin(part);
    const Part& from = value.parts.at(part);
    fusion::decode({from.at, from.bytes}, x.subspan(begin - first, layout.begin(part + 1) - begin));
  });
}

std::int64_t EncodedValues::held_bytes() const { return held_ + static_cast<std::int64_t>(scratch_.size()); }

std::int64_t EncodedValues::held_bytes_for(std::int64_t encoded, int threads) {
  std::int64_t held = 0;
  while (held < encoded) held += static_cast<std::int64_t>(next_slab(held));
  return held + std::max(threads, 1) * static_cast<std::int64_t>(scratch_of_thread());
}

}  // namespace hfta::fusion
