// Rows of every length in stretches of lanes, against loops. instruction_sets.txt runs this program under each.
#include "fusion/simd/vector.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::simd {
namespace {

constexpr double kBeyond = 77;  // what lies behind a row, and stays

template <typename T>
std::vector<T> row_of(std::int64_t n) {
  std::vector<T> row(static_cast<std::size_t>(n) + kLanes, static_cast<T>(kBeyond));
  for (std::int64_t i = 0; i < n; ++i)
    row[static_cast<std::size_t>(i)] = static_cast<T>(std::sin(3.0 * static_cast<double>(i)) - 1.5);
  return row;
}

template <typename T>
struct Found {
  T sum = 0, largest = 0, total = 0;
  std::vector<T> exponentials, firsts;
};

template <typename R, typename T>
inline __attribute__((always_inline)) void find(R, const std::vector<T>& row, std::int64_t n, Found<T>& found) {
  using V = Lanes<T, R::kBytes>;
  found.sum = sum_of<V>(row.data(), n);
  found.largest = largest_of<V>(row.data(), n);
  found.total = exponentials<V>(row.data(), n, found.largest, found.exponentials.data());
  for_each_stretch<V>(
      n, [&](auto at) __attribute__((always_inline)) {
        at.store(found.firsts.data(), (at(row.data()) * T{2} + T{1}).first(n / 2 - at.i, T{5}));
      });
}

template <typename T>
void check(std::int64_t n, double tolerance) {
  CAPTURE(n, sizeof(T));
  const std::vector<T> row = row_of<T>(n);
  Found<T> found;
  found.exponentials.assign(row.size(), static_cast<T>(kBeyond));
  found.firsts = found.exponentials;
  multiversion([&](auto r) { find(r, row, n, found); });
  const auto end = row.begin() + static_cast<std::ptrdiff_t>(n);
  const T largest = *std::max_element(row.begin(), end);
  CHECK(found.largest == largest);
  double sum = 0, total = 0, off = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i >= static_cast<std::size_t>(n)) {
      CHECK(found.exponentials[i] == static_cast<T>(kBeyond));
      CHECK(found.firsts[i] == static_cast<T>(kBeyond));
      continue;
    }
    const double e = std::exp(static_cast<double>(row[i]) - static_cast<double>(largest));
    sum += static_cast<double>(row[i]);
    total += e;
    off = std::max(off, std::abs(static_cast<double>(found.exponentials[i]) - e));
    const double wanted = i < static_cast<std::size_t>(n / 2) ? static_cast<double>(row[i]) * 2 + 1 : 5;
    off = std::max(off, std::abs(static_cast<double>(found.firsts[i]) - wanted));
  }
  CHECK(off < tolerance);
  CHECK(static_cast<double>(found.sum) == Approx(sum).epsilon(10 * tolerance));
  CHECK(static_cast<double>(found.total) == Approx(total).epsilon(10 * tolerance));
}

}  // namespace

TEST_CASE("rows of every length: sums, maxima, exponentials, and nothing behind their ends") {
  for (std::int64_t n = 1; n <= 50; ++n) {
    check<float>(n, 1e-6);
    check<double>(n, 1e-14);
  }
}

}  // namespace hfta::fusion::simd
