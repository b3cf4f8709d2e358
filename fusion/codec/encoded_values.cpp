#include "fusion/codec/encoded_values.hpp"

#include <algorithm>
#include <cstring>

#include "fusion/codec/codec.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kPart = 4096;  // values; a whole number of blocks
constexpr std::size_t kLeastSlab = std::size_t{128} << 10, kLargestSlab = std::size_t{4} << 20;

std::size_t scratch_of_thread() { return most_encoded_bytes(kPart); }

// Slabs grow with what is there: few for large values, and little that is not used for small ones.
std::size_t next_slab(std::int64_t held) {
  constexpr std::int64_t kShare = 16;
  return std::clamp(static_cast<std::size_t>(held / kShare), kLeastSlab, kLargestSlab);
}

Stretches parts_of(std::size_t n) { return {static_cast<std::int64_t>(n), kPart}; }

}  // namespace

void EncodedValues::begin(std::size_t count, int threads) {
  slab_ = used_ = 0;
  parts_.resize(count);
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

void EncodedValues::encode(std::size_t i, std::span<const float> x, float bound, Team* team) {
  const Stretches stretches = parts_of(x.size());
  std::vector<Part>& parts = parts_.at(i);
  parts.resize(static_cast<std::size_t>(stretches.count()));
  share(team, stretches, [&](std::int64_t first, std::int64_t count, int thread) {
    const auto own =
        std::span(scratch_).subspan(static_cast<std::size_t>(thread) * scratch_of_thread(), scratch_of_thread());
    const std::size_t bytes =
        fusion::encode(x.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), bound, own);
    std::byte* const at = allocate(bytes);
    std::memcpy(at, own.data(), bytes);
    parts[static_cast<std::size_t>(first / kPart)] = {at, bytes};
  });
}

void EncodedValues::decode(std::size_t i, std::span<float> x, Team* team) const {
  const std::vector<Part>& parts = parts_.at(i);
  share(team, parts_of(x.size()), [&](std::int64_t first, std::int64_t count, int) {
    const Part& part = parts.at(static_cast<std::size_t>(first / kPart));
    fusion::decode({part.at, part.bytes}, x.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  });
}

std::int64_t EncodedValues::held_bytes() const { return held_ + static_cast<std::int64_t>(scratch_.size()); }

std::int64_t EncodedValues::held_bytes_for(std::int64_t encoded, int threads) {
  std::int64_t held = 0;
  while (held < encoded) held += static_cast<std::int64_t>(next_slab(held));
  return held + std::max(threads, 1) * static_cast<std::int64_t>(scratch_of_thread());
}

}  // namespace hfta::fusion
