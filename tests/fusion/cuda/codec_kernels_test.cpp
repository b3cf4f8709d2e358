// The codec's kernels, run on the CPU by fake/cuda_runtime.h, against the CPU's coder: equal bytes, equal values.
#include "fusion/cuda/codec_kernels.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "fusion/codec/codec.hpp"
#include "fusion/cuda/launch.cuh"
#include "fusion/cuda/look_back.cuh"

namespace hfta::fusion::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint32_t kUntouched = 0xa5a5a5a5;

std::size_t whole_words(std::size_t bytes) { return (bytes + 3) / 4; }

// Words that slots' bytes lie in, with some behind the last that nobody may touch.
struct Memory {
  std::size_t slot_words, slots;
  std::vector<std::uint32_t> words;

  Memory(std::size_t of_slot, std::size_t count)
      : slot_words(of_slot), slots(count), words(of_slot * count + 8, kUntouched) {}
  [[nodiscard]] std::size_t stride() const { return slot_words * 4; }
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(words.data()); }
  [[nodiscard]] std::span<const std::byte> of(std::size_t slot, std::size_t size) const {
    return std::as_bytes(std::span(words)).subspan(slot * stride(), size);
  }
  [[nodiscard]] bool end_untouched() const {
    return std::all_of(words.end() - 8, words.end(), [](std::uint32_t word) { return word == kUntouched; });
  }
};

// Workspace as others leave it.
std::vector<std::uint64_t> workspace_for(std::size_t n, std::size_t slots) {
  return std::vector<std::uint64_t>(codec_workspace(n, static_cast<int>(slots)), 0xdeadbeefdeadbeef);
}

std::vector<std::uint64_t> encoded(const std::vector<float>& x, const std::vector<float>& bounds, Memory& memory) {
  const std::size_t slots = bounds.size(), n = x.size() / slots;
  std::vector<std::uint64_t> sizes(slots, 77), workspace = workspace_for(n, slots);
  encode_slots({x.data(), n, static_cast<int>(slots)}, bounds.data(), {memory.bytes(), memory.stride()}, sizes.data(),
               workspace.data(), nullptr);
  REQUIRE(memory.end_untouched());
  return sizes;
}

std::vector<float> decoded(Memory& memory, std::size_t n) {
  std::vector<float> x(memory.slots * n + 1, 77.0F);
  std::vector<std::uint64_t> workspace = workspace_for(n, memory.slots);
  decode_slots({memory.bytes(), memory.stride()}, {x.data(), n, static_cast<int>(memory.slots)}, workspace.data(),
               nullptr);
  REQUIRE(x.back() == 77.0F);
  x.pop_back();
  return x;
}

// That kernels and CPU agree on x [slots, n], each slot with its bound.
void check(const std::vector<float>& x, const std::vector<float>& bounds) {
  const std::size_t slots = bounds.size(), n = x.size() / slots;
  Memory memory(whole_words(most_encoded_bytes(n)), slots);
  const std::vector<std::uint64_t> sizes = encoded(x, bounds, memory);
  const std::vector<float> back = decoded(memory, n);
  for (std::size_t b = 0; b < slots; ++b) {
    CAPTURE(n, b, bounds[b]);
    std::vector<std::byte> wanted(most_encoded_bytes(n));
    wanted.resize(encode(std::span(x).subspan(b * n, n), bounds[b], wanted));
    REQUIRE(sizes[b] == wanted.size());
    REQUIRE(std::memcmp(memory.of(b, wanted.size()).data(), wanted.data(), wanted.size()) == 0);
    std::vector<float> values(n);
    decode(wanted, values);
    if (n > 0) REQUIRE(std::memcmp(back.data() + b * n, values.data(), n * sizeof(float)) == 0);
  }
}

// Normal numbers; `relu`: those below zero are zero.
std::vector<float> activations(std::size_t n, bool relu) {
  CountedRandom random(5, Stream::kDropout, n);
  std::vector<float> x(n);
  for (float& v : x) {
    const double normal = std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(6.283185307 * random.uniform());
    v = relu && normal < 0 ? 0.0F : static_cast<float>(normal);
  }
  return x;
}

void looking_back(std::uint64_t* states, std::size_t tile, std::uint64_t adds, std::uint64_t* found) {
  if (threadIdx.x < kLanes) *found = look_back(states, tile, adds);
}

}  // namespace

TEST_CASE("the codec's kernels write the CPU's bytes, and read them, whatever the size") {
  for (std::size_t n = 0; n <= 100; ++n) check(activations(n, n % 2 == 0), {0.01F});
  for (const std::size_t n : {127, 128, 129, 4095, 4096, 4097}) check(activations(n, true), {0.003F});
}

TEST_CASE("every slot has a bound of its own, and one that is none keeps the slot as it is") {
  for (const std::size_t n : {0, 1, 33, 1000, 4100}) {
    const std::vector<float> bounds = {0.01F, 0.5F, 0.0F, -1.0F, kNan, kInfinity, 1e-38F, 1e-4F, 3e38F, 1e20F};
    check(activations(n * bounds.size(), true), bounds);
  }
}

TEST_CASE("a tile looks back over more tiles than a warp has lanes") {
  check(activations(4096 * 35 + 77, true), {0.02F});
  check(activations(4096 * 33 * 2, false), {0.02F, 0.5F});
}

// On the fake whoever is in front has always ended, so states are made here that are as they may be on a GPU.
TEST_CASE("looking back adds what tiles have said, up to the nearest whole sum") {
  constexpr std::uint64_t kAdds = 1000;
  for (const std::size_t tile : {1, 2, 31, 32, 33, 64, 65, 200}) {
    for (const std::size_t parts : {0, 1, 2, 30, 31, 32, 33, 63, 64, 199}) {  // in front of it that have no whole sum
      if (parts >= tile) continue;
      std::vector<std::uint64_t> states(tile + 1);
      std::uint64_t sum = 0, found = 77;
      for (std::size_t t = 0; t < tile; ++t) {
        const std::uint64_t adds = (t * 37) % 4097;
        sum += adds;
        states[t] = t + parts < tile ? tile_state::kWhole | sum : tile_state::kPart | adds;
      }
      states[tile] = tile_state::kPart | kAdds;
      launch("looking back", looking_back, dim3(1), nullptr, states.data(), tile, kAdds, &found);
      CAPTURE(tile, parts);
      CHECK(found == sum);
      CHECK(states[tile] == (tile_state::kWhole | (sum + kAdds)));
    }
  }
}

TEST_CASE("what one block holds: zeros, constants, values without a bound, any bits") {
  std::vector<float> x(32 * 300);
  CountedRandom random(11, Stream::kDropout, 0);
  const float odd[] = {kNan, -kNan, kInfinity, -kInfinity, 3e38F, -1e15F, 0x1p31F, 1e-40F, -0.0F, 4194304.0F};
  for (std::size_t b = 0; b < 300; ++b) {
    float* const block = x.data() + 32 * b;
    for (std::size_t i = 0; i < 32; ++i) {
      const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random.uniform() * 0x1p32));
      const auto wide = static_cast<float>(std::ldexp(random.uniform() - 0.5, static_cast<int>(b % 60) - 30));
      const float kinds[] = {0.0F, -3.7F, wide, any, wide};
      block[i] = kinds[b % 5];
    }
    if (b % 5 == 4) block[b % 32] = odd[b / 5 % 10];
  }
  for (const float bound : {1e-9F, 0.01F, 0.5F, 1.0F / 3, 1e6F}) check(x, {bound});
}

TEST_CASE("rows that do not lie at multiples of 16 bytes are coded alike") {
  const std::vector<float> x = activations(4 * 8195, true);  // slots begin at every remainder
  check(x, {0.01F, 0.02F, 0.03F, 0.04F});
}

TEST_CASE("a slot that needs more than its stride says so, and writes no further") {
  const std::size_t n = 5000;
  std::vector<float> x = activations(2 * n, true);
  for (std::size_t i = 0; i < n; ++i) x[i] = 0;
  for (const std::size_t words : {0, 1, 20, 41, 1000}) {
    Memory memory(words, 2);
    const std::vector<std::uint64_t> sizes = encoded(x, {0.01F, 0.01F}, memory);
    std::vector<std::byte> wanted(most_encoded_bytes(n));
    wanted.resize(encode(std::span(x).subspan(n), 0.01F, wanted));
    REQUIRE(sizes == std::vector<std::uint64_t>{4 + 160, wanted.size()});
    CHECK(std::memcmp(memory.of(1, words * 4).data(), wanted.data(), words * 4) == 0);
    const std::vector<float> back = decoded(memory, n);
    if (words >= 41) CHECK(std::vector<float>(back.begin(), back.begin() + n) == std::vector<float>(n, 0.0F));
  }
}

TEST_CASE("bytes that no encoder wrote are decoded to something, and nothing is read or written outside") {
  const std::size_t n = 4500;
  const std::vector<float> x = activations(n, true);
  Memory good(whole_words(most_encoded_bytes(n)), 1);
  good.slot_words = encoded(x, {0.01F}, good)[0] / 4;
  CountedRandom random(4, Stream::kDropout, 0);
  for (int round = 0; round < 20; ++round) {
    Memory damaged(good.slot_words, 1);
    damaged.words.assign(good.words.begin(), good.words.begin() + static_cast<std::ptrdiff_t>(good.slot_words));
    damaged.words.shrink_to_fit();  // a sanitizer sees who reads beyond
    for (std::size_t w = 0; w < 37; ++w) {
      if (random.uniform() < 0.3) damaged.words[w] = static_cast<std::uint32_t>(random.uniform() * 0x1p32);
    }
    static_cast<void>(decoded(damaged, n));
  }
  Memory widest(whole_words(most_encoded_bytes(n)), 1);
  std::fill(widest.words.begin(), widest.words.end(), 0xffffffffU);
  const std::vector<float> back = decoded(widest, n);
  CHECK(std::bit_cast<std::uint32_t>(back.front()) == 0xffffffffU);  // 255 bits are 32: kept as it is
  CHECK(std::bit_cast<std::uint32_t>(back.back()) == 0xffffffffU);
}

}  // namespace hfta::fusion::cuda
