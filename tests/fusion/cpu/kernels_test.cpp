// Kernels that cpu_test's graphs reach in few shapes: products of matrices and transpositions, in float and double.
// instruction_sets.txt runs this program under each.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "fusion/cpu/kernels/batch_norm.hpp"
#include "fusion/cpu/kernels/gemm.hpp"
#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr double kUntouched = 99;

template <typename T>
std::vector<T> waves(std::int64_t n, double step) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(std::sin(step * static_cast<double>(i)));
  return values;
}

Product product(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed, bool add,
                std::int64_t gap = 3) {
  return {.m = m,
          .n = n,
          .k = k,
          .lda = (a_transposed ? m : k) + gap,
          .ldb = (b_transposed ? k : n) + gap,
          .ldc = n + gap,
          .a_transposed = a_transposed,
          .b_transposed = b_transposed,
          .add = add};
}

// The largest error, of elements that are to be C plus one, which `done` adds; infinite where others were written to.
// `made`: C.
template <typename T>
double error_of(const Product& p, Team* team = nullptr, std::vector<T>* made = nullptr) {
  const auto a = waves<T>((p.a_transposed ? p.k : p.m) * p.lda, 0.7);
  const auto b = waves<T>((p.b_transposed ? p.n : p.k) * p.ldb, 0.3);
  std::vector<T> c(static_cast<std::size_t>(p.m * p.ldc), static_cast<T>(kUntouched));
  const Gemm<T> gemm(p);
  std::vector<T> scratch(static_cast<std::size_t>(gemm.scratch(team == nullptr ? 1 : team->threads())) + 1,
                         static_cast<T>(kUntouched));
  gemm(a.data(), b.data(), c.data(), scratch.data(), team,
       [&](T* corner, std::int64_t ld, std::int64_t, std::int64_t rows, std::int64_t columns) {
         for (std::int64_t i = 0; i < rows; ++i) {
           for (std::int64_t j = 0; j < columns; ++j) corner[i * ld + j] += 1;
         }
       });
  double off = scratch.back() == static_cast<T>(kUntouched) ? 0 : INFINITY;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.ldc; ++j) {
      double wanted = kUntouched;
      if (j < p.n) {
        wanted = (p.add ? kUntouched : 0) + 1;
        for (std::int64_t k = 0; k < p.k; ++k) {
          wanted += static_cast<double>(a[static_cast<std::size_t>(p.a_transposed ? k * p.lda + i : i * p.lda + k)]) *
                    static_cast<double>(b[static_cast<std::size_t>(p.b_transposed ? j * p.ldb + k : k * p.ldb + j)]);
        }
      }
      off = std::max(off, std::abs(static_cast<double>(c[static_cast<std::size_t>(i * p.ldc + j)]) - wanted));
    }
  }
  if (made != nullptr) *made = std::move(c);
  return off;
}

template <typename T>
void check_transpose(std::int64_t rows, std::int64_t columns) {
  const std::int64_t ld = columns + 2, ldt = rows + 5;
  const auto from = waves<T>(rows * ld, 0.9);
  std::vector<T> to(static_cast<std::size_t>(columns * ldt), static_cast<T>(kUntouched));
  transpose(from.data(), ld, rows, columns, to.data(), ldt);
  bool right = true;
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < ldt; ++r) {
      const T wanted = r < rows ? from[static_cast<std::size_t>(r * ld + c)] : static_cast<T>(kUntouched);
      right = right && to[static_cast<std::size_t>(c * ldt + r)] == wanted;
    }
  }
  CAPTURE(rows, columns, sizeof(T));
  CHECK(right);
}

}  // namespace

TEST_CASE("products of matrices of all kinds of shapes") {
  for (const std::int64_t m : {1, 10, 64, 70, 260}) {
    for (const std::int64_t n : {1, 7, 8, 10, 64, 67, 130}) {
      for (const std::int64_t k : {1, 9, 64, 500}) {
        for (int kind = 0; kind < 8; ++kind) {
          const Product p = product(m, n, k, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0);
          CAPTURE(m, n, k, p.a_transposed, p.b_transposed, p.add);
          const double most = kUntouched + static_cast<double>(k);  // that a sum may come to on its way
          CHECK(error_of<float>(p) < 16 * most * std::numeric_limits<float>::epsilon());
          CHECK(error_of<double>(p) < 16 * most * std::numeric_limits<double>::epsilon());
        }
      }
    }
  }
}

TEST_CASE("products of few rows and a large matrix") {
  static const std::vector<std::array<std::int64_t, 3>> sizes = {
      {5, 2100, 503}, {31, 530, 2000}, {8, 513, 2048}, {1, 5000, 211}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool add : {false, true}) {
      CAPTURE(m, n, k, add);
      const double most = kUntouched + static_cast<double>(k);
      CHECK(error_of<float>(product(m, n, k, false, false, add)) < 16 * most * std::numeric_limits<float>::epsilon());
      CHECK(error_of<double>(product(m, n, k, false, false, add)) < 16 * most * std::numeric_limits<double>::epsilon());
    }
  }
}

// Such rows fall together in caches, so blocks are copied.
TEST_CASE("products of matrices whose rows lie multiples of a page apart") {
  static const std::vector<std::array<std::int64_t, 3>> sizes = {{63, 130, 100}, {64, 130, 1100}, {64, 67, 100},
                                                                 {130, 70, 300}, {255, 67, 1100}, {300, 130, 100}};
  Team two(2);
  for (const auto& [m, n, k] : sizes) {
    for (int kind = 0; kind < 16; ++kind) {
      Product p = product(m, n, k, (kind & 1) != 0, false, (kind & 2) != 0);
      if ((kind & 4) != 0) p.lda = p.a_transposed ? 512 : 2048;
      p.ldb = (kind & 8) != 0 ? 1024 : 768;
      if ((kind & 8) != 0) p.ldc = n;  // so that sums of many rows are made in slices
      CAPTURE(m, n, k, p.a_transposed, p.add, p.lda, p.ldb);
      const double most = (kUntouched + static_cast<double>(k)) * std::numeric_limits<float>::epsilon();
      std::vector<float> alone, shared;
      CHECK(error_of<float>(p, nullptr, &alone) < 16 * most);
      CHECK(error_of<float>(p, &two, &shared) < 16 * most);
      CHECK(error_of<double>(p, &two) < 1e-9);
      CHECK(shared == alone);
    }
  }
}

TEST_CASE("products that sum rows in slices are equal bits for every team") {
  Team two(2), three(3);
  for (const std::int64_t k : {1024, 1500, 5003}) {
    for (const std::int64_t n : {7, 130}) {
      for (const std::int64_t m : {10, 260}) {
        for (int kind = 0; kind < 4; ++kind) {
          const Product p = product(m, n, k, true, (kind & 1) != 0, (kind & 2) != 0, 0);
          CAPTURE(m, n, k, p.b_transposed, p.add);
          const double most = (kUntouched + static_cast<double>(k)) * std::numeric_limits<float>::epsilon();
          std::vector<float> alone, shared;
          CHECK(error_of<float>(p, nullptr, &alone) < 16 * most);
          for (Team* team : {&two, &three}) {
            CHECK(error_of<float>(p, team, &shared) < 16 * most);
            CHECK(shared == alone);
          }
        }
      }
    }
  }
}

TEST_CASE("transpositions") {
  for (const std::int64_t rows : {1, 7, 8, 9, 16, 33}) {
    for (const std::int64_t columns : {1, 7, 8, 15, 24, 40}) {
      check_transpose<float>(rows, columns);
      check_transpose<double>(rows, columns);
    }
  }
}

TEST_CASE("statistics of columns whose rows are unlike") {
  constexpr std::int64_t kRows = 331, kPatterns = 7, kChannels = 9 * kPatterns, kLd = kChannels + 2;
  std::vector<float> x(kRows * kLd);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const double wave = std::sin(1.3 * static_cast<double>(r)), row = static_cast<double>(r);
    const double patterns[kPatterns] = {1e4 + wave,                     // a large mean
                                        row + wave,                     // a mean that drifts
                                        (r < 64 ? 1e4 : 0.0) + wave,    // a first block like no other
                                        (r == 330 ? 1e6 : 0.0) + wave,  // a last row like no other
                                        (r % 2 == 0 ? 1e5 : -1e5) + wave,
                                        0.1,  // no variance
                                        (r < 128 ? 0.0 : wave)};
    for (std::int64_t c = 0; c < kChannels; ++c) {
      x[static_cast<std::size_t>(r * kLd + c)] =
          static_cast<float>(patterns[c % kPatterns] * static_cast<double>(1 + c / kPatterns));
    }
  }
  std::vector<double> mean(kChannels), found(kChannels);
  column_statistics(x.data(), kLd, kRows, kChannels, mean.data(), found.data());
  for (std::int64_t c = 0; c < kChannels; ++c) {
    CAPTURE(c);
    double sum = 0, squares = 0;
    const auto at = [&](std::int64_t r) { return static_cast<double>(x[static_cast<std::size_t>(r * kLd + c)]); };
    for (std::int64_t r = 0; r < kRows; ++r) sum += at(r);
    const double wanted = sum / kRows;
    for (std::int64_t r = 0; r < kRows; ++r) squares += (at(r) - wanted) * (at(r) - wanted);
    CHECK(mean[static_cast<std::size_t>(c)] == Approx(wanted).epsilon(1e-7).margin(1e-6 * std::sqrt(squares / kRows)));
    CHECK(found[static_cast<std::size_t>(c)] == Approx(squares).epsilon(1e-5).margin(1e-13 * kRows));
    CHECK(found[static_cast<std::size_t>(c)] >= 0);
  }
}

TEST_CASE("LIBXSMM makes kernels of no wider instructions than HFTA_INSTRUCTION_SET names") {
  const char* const text = std::getenv("HFTA_INSTRUCTION_SET");
  const std::string limit = text == nullptr ? "" : text, target = xsmm_target();
  CAPTURE(limit, target);
  CHECK_FALSE(target.empty());
  const bool avx512 = target == "knl" || target == "knm" || target == "skx" || target == "clx" || target == "cpx";
  if (limit == "x86-64" || limit == "x86-64-v3") CHECK_FALSE(avx512);
  if (limit == "x86-64") CHECK(target != "hsw");
  if (limit == "x86-64-v4" && avx512) CHECK(target == "skx");
}

}  // namespace hfta::fusion::cpu
