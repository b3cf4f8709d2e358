// Embeddings, looked up and summed by the kernels on the CPU (fake/cuda_runtime.h), against plain loops.
#include "fusion/cuda/embedding_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 3;

struct Sizes {
  std::size_t positions, rows, features;
};

template <typename T>
struct Case {
  Sizes sizes;
  bool shared;
  std::int64_t padding = -1;
  std::vector<T> tables, dy;
  std::vector<std::int64_t> indices;

  Case(const Sizes& all, bool is_shared)
      : sizes(all),
        shared(is_shared),
        tables(kSlots * all.rows * all.features),
        dy(kSlots * all.positions * all.features),
        indices((shared ? 1 : kSlots) * all.positions) {
    fill_normal(tables.data(), tables.size(), 1, 0, 3);
    fill_normal(dy.data(), dy.size(), 1, 1, 3);
    for (std::size_t p = 0; p < indices.size(); ++p) {  // every third one is that of row 0
      indices[p] = p % 3 == 0 ? 0 : static_cast<std::int64_t>((p * p + p / 7) % sizes.rows);
    }
  }
  [[nodiscard]] Lookup lookup(int slots = kSlots) const {
    return {indices.data(), shared ? 0 : sizes.positions, padding, slots, sizes.positions, sizes.rows, sizes.features};
  }
  [[nodiscard]] std::int64_t index(std::size_t slot, std::size_t position) const {
    return indices[(shared ? 0 : slot * sizes.positions) + position];
  }
};

template <typename T>
struct Results {
  std::vector<T> y, dtables;

  explicit Results(const Case<T>& all, T first) : y(all.dy.size(), first), dtables(all.tables.size(), first) {}
};

template <typename T>
Results<T> by_kernels(const Case<T>& all, int slots = kSlots) {
  Results<T> out(all, std::numeric_limits<T>::quiet_NaN());
  embedding(all.lookup(slots), all.tables.data(), out.y.data(), nullptr);
  embedding_backward(all.lookup(slots), all.dy.data(), out.dtables.data(), nullptr);
  return out;
}

template <typename T>
Results<T> by_loops(const Case<T>& all) {
  Results<T> out(all, 0);
  const auto [positions, rows, features] = all.sizes;
  for (std::size_t i = 0; i < all.dy.size(); ++i) {
    const std::size_t slot = i / (positions * features), position = i / features % positions;
    const std::int64_t index = all.index(slot, position);
    const std::size_t at = (slot * rows + static_cast<std::size_t>(index)) * features + i % features;
    out.y[i] = all.tables[at];
    if (index != all.padding) out.dtables[at] += all.dy[i];
  }
  return out;
}

template <typename T>
void compare(const Case<T>& all, double within) {
  const Results<T> found = by_kernels(all), wanted = by_loops(all);
  CHECK(found.y == wanted.y);
  double apart = 0;
  for (std::size_t i = 0; i < wanted.dtables.size(); ++i) {
    const double one = std::abs(static_cast<double>(found.dtables[i]) - static_cast<double>(wanted.dtables[i]));
    apart = std::isnan(one) ? std::numeric_limits<double>::infinity() : std::max(apart, one);
  }
  CHECK(apart <= within);
}

}  // namespace

TEST_CASE("rows are looked up and their gradients summed") {
  // A tile is 32 rows of 32 features, 16 in float64; a block's warps look at 256 positions together, and four times
  // that at once.
  const auto [positions, rows, features] = GENERATE(table<std::size_t, std::size_t, std::size_t>(
      {{0, 3, 2}, {1, 1, 1}, {31, 1, 33}, {33, 16, 32}, {256, 17, 5}, {90, 33, 2}, {300, 40, 70}, {1100, 2, 3}}));
  const bool shared = GENERATE(false, true);
  CAPTURE(positions, rows, features, shared);
  Case<double> wide({positions, rows, features}, shared);
  compare(wide, 1e-12);
  wide.padding = 0;
  compare(wide, 1e-12);
  compare(Case<float>({positions, rows, features}, shared), 1e-3);
}

TEST_CASE("an index of no row gives NaN and no gradient, and what is not finite stays in its slot") {
  Case<double> all({70, 20, 33}, false);
  const Results<double> clean = by_kernels(all);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> outside = {20, -1, kMost, -kMost - 1, 31, -16};
  std::copy(outside.begin(), outside.end(), all.indices.begin());
  std::fill_n(all.dy.begin(), outside.size() * 33, std::nan(""));
  all.dy[69 * 33] = std::numeric_limits<double>::infinity();
  const Results<double> found = by_kernels(all);
  for (std::size_t i = 0; i < outside.size() * 33; ++i) CHECK(std::isnan(found.y[i]));
  const auto all_finite = [&](std::size_t from, std::size_t to) {
    return std::all_of(found.dtables.begin() + static_cast<std::ptrdiff_t>(from),
                       found.dtables.begin() + static_cast<std::ptrdiff_t>(to),
                       [](double x) { return std::isfinite(x); });
  };
  const auto poisoned = static_cast<std::size_t>(all.index(0, 69)) * 33;
  CHECK(std::isinf(found.dtables[poisoned]));
  CHECK(all_finite(0, poisoned));
  CHECK(all_finite(poisoned + 1, found.dtables.size()));
  CHECK(std::equal(found.y.begin() + 70 * 33, found.y.end(), clean.y.begin() + 70 * 33));
  CHECK(std::equal(found.dtables.begin() + 20 * 33, found.dtables.end(), clean.dtables.begin() + 20 * 33));
}

TEST_CASE("a slot's gradient is the same to the bit alone, beside others, and where they share its indices") {
  const Case<float> shared({700, 30, 4}, true);
  Case<float> own({700, 30, 4}, false);
  for (std::size_t b = 0; b < kSlots; ++b) {
    std::copy(shared.indices.begin(), shared.indices.end(), own.indices.begin() + static_cast<std::ptrdiff_t>(b * 700));
  }
  const Results<float> wanted = by_kernels(own), alone = by_kernels(own, 1);
  CHECK(by_kernels(shared).dtables == wanted.dtables);
  CHECK(by_kernels(shared).y == wanted.y);
  CHECK(std::equal(wanted.dtables.begin(), wanted.dtables.begin() + 30 * 4, alone.dtables.begin()));
}

}  // namespace hfta::fusion::cuda
