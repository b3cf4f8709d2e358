#include "fusion/data/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/hash.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{1} << 16;

// Words of eight bytes in four lanes, which a processor computes side by side, mixed as xxHash's rounds do (Y. Collet,
// xxHash 0.8, XXH64): a bit of a word reaches the others of its lane, so that signs that flip do not undo each other.
class Lanes {
 public:
  void add(std::span<const std::byte> bytes) {
    std::size_t begin = 0;
    for (; begin + kStride <= bytes.size(); begin += kStride) add_stride(bytes.data() + begin);
    std::array<std::byte, kStride> rest{};
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.end(), rest.begin());
    add_stride(rest.data());
  }
  [[nodiscard]] std::span<const std::uint64_t> values() const { return lanes_; }

 private:
  static constexpr std::size_t kLanes = 4, kStride = kLanes * sizeof(std::uint64_t);
  static constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f;

  void add_stride(const std::byte* at) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + lane * sizeof word, sizeof word);
      lanes_[lane] = std::rotl(lanes_[lane] + word * kPrime2, 31) * kPrime1;
    }
  }

  std::array<std::uint64_t, kLanes> lanes_ = {1, 2, 3, 4};
};

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
    Lanes lanes;
    lanes.add(bytes);
    hash.add(std::as_bytes(lanes.values()));
  }
}

void add_field(Fnv1a& hash, const Field& field) {
  const NumberType type = field.data.type();
  hash.add(fmt::format("{} {}{} {} {} {}\n", to_text(field.shape), type.kind, type.width, field.data.size(),
                       field.rows.first, field.rows.step));
  add_numbers(hash, field.data);
}

}  // namespace

std::string fingerprint_of(const std::vector<const Dataset*>& sets, const std::vector<std::int64_t>& groups) {
  Fnv1a hash;
  if (!groups.empty()) add_numbers(hash, Numbers(groups));
  for (const Dataset* set : sets) {
    hash.add(fmt::format("{} samples\n", set->size));
    for (const Field& input : set->inputs) add_field(hash, input);
    if (set->labelled) add_field(hash, set->target);
  }
  return fmt::format("{:016x}", hash.value());
}

}  // namespace hfta::fusion
