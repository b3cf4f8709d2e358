#include "fusion/cpu/kernels/gemm.hpp"

#include <fmt/format.h>
#include <libxsmm.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.hpp"
#include "fusion/cpu/kernels/elements.hpp"
#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

// A block's part of B, 64 columns of float by 256, is 64 KiB: it stays in the second cache while A streams by.
constexpr std::int64_t kColumns = 64, kDepth = 256;
std::int64_t parts(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

std::int64_t rows_of_whole(const Product& p) { return p.rows_of_whole > 0 ? p.rows_of_whole : p.m; }

// Where A has few rows, the time is that of reading B from memory: long pieces of few rows at a time, as memory and the
// translation of addresses like it. C's block, 64 KiB of float, stays in the second cache.
constexpr std::int64_t kStreamedBlock = 16384, kLeastStreamed = 512, kMostStreamed = 2048, kStreamedDepth = 16;
bool streams_b(const Product& p) {
  constexpr std::int64_t kFew = 32, kLarge = 1048576;  // 4 MiB of float: no second cache holds it
  return !p.a_transposed && !p.b_transposed && p.m <= kFew && p.n >= kLeastStreamed && p.n * p.k >= kLarge;
}

// Where B has few columns, it is A that is read from memory: a row for each way of the first cache, in which rows that
// lie a multiple of a page apart fall together.
constexpr std::int64_t kStreamedRows = 8;
bool streams_a(const Product& p) {
  constexpr std::int64_t kFew = 32, kLarge = 65536;
  return !p.a_transposed && p.n <= kFew && p.m * p.k >= kLarge;
}

bool has_avx512() { return simd::instruction_set() == simd::InstructionSet::kV4; }

// Where A is transposed, a kernel reads a line of every row of its block for a few of that row's elements: both blocks,
// 16 KiB of float each, should stay in the first cache. Where B has few columns that was slower; with AVX-512, whose
// kernels make more products of such a line, neither this nor copies_blocks_of_a() was measured.
std::int64_t most_depth(const Product& p) {
  constexpr std::int64_t kTransposedDepth = 64;
  return p.a_transposed && p.n >= kColumns && !has_avx512() ? kTransposedDepth : kDepth;
}

// Panels of B for which a block of A is used at once, where A is transposed: a copy of the block has to pay, and a team
// needs several stretches.
std::int64_t panels_at_once(std::int64_t panels, std::int64_t blocks, bool copied) {
  constexpr std::int64_t kMost = 4, kStretches = 4;
  return copied ? std::clamp<std::int64_t>(panels * blocks / kStretches, 1, std::min(kMost, panels)) : 1;
}

// Rows of a block: fewer where C has so few blocks that a team could not share them.
std::int64_t rows_of_block(const Product& p) {
  constexpr std::int64_t kLeast = 16;
  constexpr double kWanted = 4;
  const std::int64_t panels = parts(p.n, kColumns), m = rows_of_whole(p);
  const double products = static_cast<double>(m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const double wanted = std::min(kWanted, products / static_cast<double>(kStretchProducts));
  std::int64_t rows = std::min(kBlockRows, m);
  while (rows >= 2 * kLeast && static_cast<double>(panels * parts(m, rows)) < std::floor(wanted)) rows /= 2;
  return std::min(rows, p.m);
}

// LIBXSMM counts columns first, as BLAS does: our C^T = B^T A^T.
template <typename T>
auto micro_kernel(const Product& p, std::int64_t rows, std::int64_t columns, std::int64_t depth, bool add) {
  const auto m = static_cast<libxsmm_blasint>(columns), n = static_cast<libxsmm_blasint>(rows),
             k = static_cast<libxsmm_blasint>(depth);
  const auto lda = static_cast<libxsmm_blasint>(p.ldb), ldb_x = static_cast<libxsmm_blasint>(p.lda),
             ldc = static_cast<libxsmm_blasint>(p.ldc);
  const int flags = p.a_transposed ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  hold_xsmm();
  const T alpha = 1, beta = add ? 1 : 0;
  if constexpr (std::is_same_v<T, float>) {
    return libxsmm_smmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  } else {
    return libxsmm_dmmdispatch(m, n, k, &lda, &ldb_x, &ldc, &alpha, &beta, &flags, nullptr);
  }
}

constexpr std::int64_t kFar = 1024;      // bytes
constexpr std::int64_t kManyRows = 256;  // rows of A: they pay for panels of all of B, however its rows lie

// Rows that lie a multiple of 1 KiB apart share few sets of the first cache, and drive one another out.
template <typename T>
bool falls_together(std::int64_t ld) {
  return ld * static_cast<std::int64_t>(sizeof(T)) % kFar == 0;
}

// Whether blocks of a transposed A are copied: their rows fall together, or lie on many pages, and then several panels
// of B have to pay for the copy.
template <typename T>
bool copies_blocks_of_a(const Product& p) {
  if (!p.a_transposed || p.k <= 16) return false;
  const bool far = p.lda * static_cast<std::int64_t>(sizeof(T)) >= kFar;
  return falls_together<T>(p.lda) || (far && p.n > kColumns && !has_avx512());
}

// The rows that A has at least where B is copied. Rows of B that fall together in the first cache, and those that lie a
// multiple of a page apart in the second one as well, are read from farther away for every few rows of A: fewer rows
// pay for the copy then. Measured on Zen 3; where there is AVX-512, second caches are larger, and products are faster
// beside the copy: there only the second counts.
template <typename T>
std::int64_t least_rows_for_copies_of_b(const Product& p) {
  constexpr std::int64_t kPage = 4096;
  if (p.ldb * static_cast<std::int64_t>(sizeof(T)) % kPage == 0) return 64;
  return falls_together<T>(p.ldb) && !has_avx512() ? 128 : kManyRows;
}

template <typename T>
void copy_block(const T* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, T* to, std::int64_t ldt) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * ld, columns, to + r * ldt);
}

}  // namespace

template <typename T>
Gemm<T>::Gemm(const Product& product) : p_(product) {
  choose_blocks();
  make_kernels();
}

template <typename T>
void Gemm<T>::choose_blocks() {
  rows_ = rows_of_block(p_);
  columns_ = std::min(kColumns, p_.n);
  const std::int64_t most = most_depth(p_);
  depth_ = p_.k <= most * 3 / 2 ? p_.k : most;
  if (streams_a(p_)) rows_ = std::min(kStreamedRows, p_.m);
  if (streams_b(p_)) {
    columns_ = std::min(std::clamp(kStreamedBlock / p_.m, kLeastStreamed, kMostStreamed), p_.n);
    depth_ = std::min(kStreamedDepth, p_.k);
  }
  // A transposed B has to be turned anyway.
  const bool copied = p_.n > kColumns && p_.m >= least_rows_for_copies_of_b<T>(p_);
  copies_b_ = copied && p_.a_transposed && !p_.b_transposed && p_.m < kManyRows;
  packed_ = p_.b_transposed || (copied && !copies_b_);
  // LIBXSMM can mask columns that do not fill a register, but only in AVX-512; otherwise it goes one by one.
  filled_ = packed_ && !p_.a_transposed && !has_avx512();
  tiled_ = !p_.a_transposed && falls_together<T>(p_.ldc);
  copies_a_ = copies_blocks_of_a<T>(p_);
  choose_scratch();
  const std::int64_t panels = parts(p_.n, columns_), blocks = parts(p_.m, rows_);
  panels_ = stretches_of(panels, columns_ * p_.k);
  const std::int64_t at_once = p_.a_transposed ? panels_at_once(panels, blocks, copies_a_) : 1;
  tiles_ =
      stretches_of(blocks * parts(panels, at_once), rows_ * columns_ * slices_.length * at_once, 1, kStretchProducts);
}

template <typename T>
void Gemm<T>::choose_scratch() {
  const std::int64_t last = (p_.n - 1) % columns_ + 1;
  packed_size_ = packed_ ? (p_.n - last + width(last)) * p_.k : 0;
  block_b_ = (aside(columns_) || aside(last) ? rows_ * width(columns_) : 0) + (copies_a_ ? rows_ * depth_ : 0);
  own_ = block_b_ + (copies_b_ ? columns_ * depth_ : 0);
  choose_slices();
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));  // threads write to no common one
  for (std::int64_t* size : {&packed_size_, &sums_size_, &own_}) *size = parts(*size, kLine) * kLine;
}

// A weight's gradient is summed over all rows of A and B. A thread of a team finds some of them in its cache, those
// that it has written itself: it sums these. Slices have enough rows that their sums are little beside what is summed.
// They are a function of the shape, so that bits are equal for every team.
template <typename T>
void Gemm<T>::choose_slices() {
  constexpr std::int64_t kLeastRows = 512;
  slices_ = {p_.k, std::max<std::int64_t>(p_.k, 1)};
  if (!p_.a_transposed || p_.ldc != p_.n || p_.k < 2 * kLeastRows) return;
  slices_.length = parts(p_.k, parts_of_sum(p_.k / kLeastRows, rows_of_whole(p_) * p_.n) * kDepth) * kDepth;
  sums_size_ = (slices_.count() - 1) * p_.m * p_.n;
}

template <typename T>
void Gemm<T>::make_kernels() {
  for (const bool short_rows : {false, true}) {
    for (const bool short_columns : {false, true}) {
      for (const bool short_depth : {false, true}) {
        for (const bool adds : {false, true}) {
          const std::int64_t rows = short_rows ? p_.m % rows_ : rows_;
          const std::int64_t columns = short_columns ? p_.n % columns_ : columns_;
          const std::int64_t depth = short_depth ? p_.k % depth_ : depth_;
          if (rows == 0 || columns == 0 || depth == 0) continue;
          Product block = p_;
          if (packed_) block.ldb = width(columns);
          if (aside(columns)) block.ldc = width(columns_);
          if (copies_a_) block.lda = rows_;
          if (copies_b_) block.ldb = columns_;
          const Micro micro = micro_kernel<T>(block, rows, width(columns), depth, adds);
          if (micro == nullptr) {
            throw Error(ErrorKind::kConfig,
                        fmt::format("matrix product {} x {} x {}: LIBXSMM has no kernel for it on this processor", p_.m,
                                    p_.n, p_.k));
          }
          micro_[short_rows][short_columns][short_depth][adds] = micro;
        }
      }
    }
  }
}

template <typename T>
std::int64_t Gemm<T>::width(std::int64_t columns) const {
  constexpr std::int64_t kRegister = 32 / static_cast<std::int64_t>(sizeof(T));
  return filled_ ? (columns + kRegister - 1) / kRegister * kRegister : columns;
}

// Packs rows [begin, end) of the panel that begins with the column.
template <typename T>
void Gemm<T>::pack(const Call& call, std::int64_t column, std::int64_t begin, std::int64_t end) const {
  const std::int64_t columns = std::min(columns_, p_.n - column);
  T* const place = call.scratch + column * p_.k + begin * width(columns);
  const T* const from = p_.b_transposed ? call.b + column * p_.ldb + begin : call.b + begin * p_.ldb + column;
  pack_panel(from, p_.ldb, p_.b_transposed, end - begin, columns, place, width(columns));
}

template <typename T>
void Gemm<T>::run(const Call& call, Team* team) const {
  if (p_.a_transposed) return run_transposed(call, team);
  T* const own = call.scratch + packed_size_;
  const std::int64_t blocks = parts(p_.m, rows_);
  const bool alone = team == nullptr || tiles_.count() == 1;
  if (packed_ && !alone) {
    share(team, panels_, [&](std::int64_t begin, std::int64_t size, int) {
      for (std::int64_t p = begin; p < begin + size; ++p) pack(call, p * columns_, 0, p_.k);
    });
  }
  share(alone ? nullptr : team, tiles_, [&](std::int64_t begin, std::int64_t size, int thread) {
    const std::int64_t panels = parts(p_.n, columns_);
    for (std::int64_t t = begin; t < begin + size; ++t) {
      // Who works alone goes panel by panel, and packs each when its first tile comes: it is still in the cache then.
      // A team goes row by row, as kernels that are not products do: mostly each thread keeps to the same samples.
      const std::int64_t column = (alone ? t / blocks : t % panels) * columns_;
      const std::int64_t row = (alone ? t % blocks : t / panels) * rows_;
      if (packed_ && alone && row == 0) pack(call, column, 0, p_.k);
      run_tile(call, column, row, packed_ ? call.scratch + column * p_.k : call.b + column, own + thread * own_);
    }
  });
}

template <typename T>
void Gemm<T>::run_transposed(const Call& call, Team* team) const {
  const std::int64_t count = slices_.count(), size = p_.m * p_.n;
  T* const sums = call.scratch + packed_size_;
  const auto slice = [&](std::int64_t i) -> Slice {
    const std::int64_t begin = slices_.begin(i), end = begin + slices_.size(i);
    return i == 0 ? Slice{begin, end, call.c, p_.add} : Slice{begin, end, sums + (i - 1) * size, false};
  };
  if (keeps_busy(team, count)) {
    share(team, count, [&](std::int64_t i, int thread) { run_slice(call, slice(i), nullptr, thread); });
  } else {
    for (std::int64_t i = 0; i < count; ++i) run_slice(call, slice(i), team, 0);
  }
  add_parts(team, call.c, sums, size, count - 1);
  if (call.done == nullptr) return;
  for (std::int64_t row = 0; row < p_.m; row += rows_) {
    for (std::int64_t j = 0; j < p_.n; j += columns_) {
      (*call.done)(call.c + row * p_.ldc + j, p_.ldc, j, std::min(rows_, p_.m - row), std::min(columns_, p_.n - j));
    }
  }
}

// Runs a slice by the team, or by that thread alone.
template <typename T>
void Gemm<T>::run_slice(const Call& call, const Slice& slice, Team* team, int thread) const {
  const std::int64_t blocks = parts(p_.m, rows_), panels = parts(p_.n, columns_);
  const std::int64_t at_once = panels_at_once(panels, blocks, copies_a_);
  T* const own = call.scratch + packed_size_ + sums_size_;
  if (packed_) {
    share(tiles_.count() == 1 ? nullptr : team, panels_, [&](std::int64_t begin, std::int64_t size, int) {
      for (std::int64_t p = begin; p < begin + size; ++p) pack(call, p * columns_, slice.begin, slice.end);
    });
  }
  share(team, tiles_, [&](std::int64_t begin, std::int64_t size, int other) {
    for (std::int64_t t = begin; t < begin + size; ++t) {
      const std::int64_t first = t / blocks * at_once, row = t % blocks * rows_;
      run_rows(call, slice, row, first, std::min(first + at_once, panels), own + (thread + other) * own_);
    }
  });
}

// A block of C, from the panel `part` of B.
template <typename T>
void Gemm<T>::run_tile(const Call& call, std::int64_t column, std::int64_t row, const T* part, T* own) const {
  const std::int64_t columns = std::min(columns_, p_.n - column), rows = std::min(rows_, p_.m - row);
  const std::int64_t ldb = packed_ ? width(columns) : p_.ldb, tile_ld = width(columns_);
  const bool tiled = aside(columns);
  T* const corner = call.c + row * p_.ldc + column;
  T* const out = tiled ? own : corner;
  if (tiled && p_.add) copy_block(corner, p_.ldc, rows, columns, own, tile_ld);
  for (std::int64_t k = 0; k < p_.k; k += depth_) {
    const Micro micro = micro_[rows < rows_][columns < columns_][p_.k - k < depth_][p_.add || k > 0];
    micro(part + k * ldb, call.a + row * p_.lda + k, out);
  }
  if (call.done != nullptr) (*call.done)(out, tiled ? tile_ld : p_.ldc, column, rows, columns);
  if (tiled) copy_block(own, tile_ld, rows, columns, corner, p_.ldc);
}

// Blocks of C in a row, panels [first, last), for a transposed A.
template <typename T>
void Gemm<T>::run_rows(const Call& call, const Slice& slice, std::int64_t row, std::int64_t first, std::int64_t last,
                       T* own) const {
  const std::int64_t rows = std::min(rows_, p_.m - row), end = std::min(last * columns_, p_.n);
  for (std::int64_t k = slice.begin; k < slice.end; k += depth_) {
    const std::int64_t depth = std::min(depth_, slice.end - k);
    const T* const a = call.a + k * p_.lda + row;
    if (copies_a_) copy_block(a, p_.lda, depth, rows, own, rows_);
    for (std::int64_t j = first * columns_; j < end; j += columns_) {
      const std::int64_t columns = std::min(columns_, p_.n - j);
      const T* part = packed_ ? call.scratch + j * p_.k + k * columns : call.b + j + k * p_.ldb;
      if (copies_b_) {
        copy_block(part, p_.ldb, depth, columns, own + block_b_, columns_);
        part = own + block_b_;
      }
      const Micro micro = micro_[rows < rows_][columns < columns_][depth < depth_][slice.add || k > slice.begin];
      micro(part, copies_a_ ? own : a, slice.c + row * p_.ldc + j);
    }
  }
}

template class Gemm<float>;
template class Gemm<double>;

}  // namespace hfta::fusion::cpu
