#include "fusion/data/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/hash.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{1} << 16;

// FNV-1a over words of eight bytes, in four lanes that a processor computes side by side. Each step of a lane is
// one to one, so that no single word can change without the lane's end.
std::array<std::uint64_t, 5> lanes_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kLanes = 4, kStride = kLanes * sizeof(std::uint64_t);
  std::array<std::uint64_t, 5> lanes = {0xcbf29ce484222325, 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                        bytes.size()};
  const auto add = [&](const std::byte* at) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + lane * sizeof word, sizeof word);
      lanes[lane] = (lanes[lane] ^ word) * 0x100000001b3;
    }
  };
  std::size_t begin = 0;
  for (; begin + kStride <= bytes.size(); begin += kStride) add(bytes.data() + begin);
  std::array<std::byte, kStride> rest{};
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end(), rest.begin());
  add(rest.data());
  return lanes;
}

void add_numbers(Fnv1a& hash, const Numbers& numbers) {
  const auto width = static_cast<std::int64_t>(numbers.type().width);
  const std::int64_t piece = kPieceBytes / width;
  const std::int64_t all = (numbers.size() + piece - 1) / piece;
  const std::int64_t taken = numbers.size() <= kWholeBytes / width ? all : std::min(all, kPieces);
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t begin = piece * (taken > 1 ? i * (all - 1) / (taken - 1) : 0);
    bytes.resize(static_cast<std::size_t>(std::min(piece, numbers.size() - begin) * width));
    numbers.read(begin, bytes);
    const std::array<std::uint64_t, 5> lanes = lanes_of(bytes);
    hash.add(std::as_bytes(std::span(lanes)));
  }
}

void add_field(Fnv1a& hash, const Field& field) {
  const NumberType type = field.data.type();
  hash.add(fmt::format("{} {}{} {} {} {}\n", to_text(field.shape), type.kind, type.width, field.data.size(),
                       field.rows.first, field.rows.step));
  add_numbers(hash, field.data);
}

}  // namespace

std::string fingerprint_of(const std::vector<const Dataset*>& sets) {
  Fnv1a hash;
  for (const Dataset* set : sets) {
    hash.add(fmt::format("{} samples\n", set->size));
    for (const Field& input : set->inputs) add_field(hash, input);
    if (set->labelled) add_field(hash, set->target);
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace hfta::fusion
