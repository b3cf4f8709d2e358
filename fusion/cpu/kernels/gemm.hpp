#pragma once
/// Matrix products: LIBXSMM's kernels, made at run time for the very shapes, in blocks that fit the caches and that a
/// team shares.

#include <cstdint>
#include <functional>

#include "fusion/threads/team.hpp"

namespace hfta::fusion::cpu {

/// Blocks of C have so many rows at most, or half or a quarter of that.
inline constexpr std::int64_t kBlockRows = 64;

/// C [M, N] = A [M, K] B [K, N], row-major with leading dimensions in elements.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool a_transposed = false;  ///< A lies as [K, M].
  bool b_transposed = false;  ///< B lies as [N, K].
  bool add = false;           ///< C += A B.
  /// C is some rows of the product of an A of so many rows, from a multiple of kBlockRows on, to the bits that they
  /// have there; 0: it is all of it.
  std::int64_t rows_of_whole = 0;
};

/// T: float, double. Immutable; many threads may call one.
template <typename T>
class Gemm {
 public:
  /// Throws Error{kConfig} where LIBXSMM makes no kernels for this processor.
  explicit Gemm(const Product& product);

  /// Elements of scratch memory that a call by a team of so many threads needs.
  [[nodiscard]] std::int64_t scratch(int threads) const { return packed_size_ + sums_size_ + threads * own_; }

  /// Called for each finished block of C, while it is in the cache: its corner with a leading dimension, its first
  /// column, rows and columns. What it changes is C's.
  using Done =
      std::function<void(T* corner, std::int64_t ld, std::int64_t column, std::int64_t rows, std::int64_t columns)>;
  void operator()(const T* a, const T* b, T* c, T* scratch, Team* team) const {
    run({a, b, c, scratch, nullptr}, team);
  }
  void operator()(const T* a, const T* b, T* c, T* scratch, Team* team, const Done& done) const {
    run({a, b, c, scratch, &done}, team);
  }

 private:
  using Micro = void (*)(const T* b, const T* a, T* c, ...);
  struct Call {
    const T* a;
    const T* b;
    T* c;
    T* scratch;
    const Done* done;
  };
  // Some rows of a transposed A and of B, and where their product goes.
  struct Slice {
    std::int64_t begin, end;
    T* c;
    bool add;
  };
  void choose_blocks();
  void choose_scratch();
  void choose_slices();
  void make_kernels();
  void run(const Call& call, Team* team) const;
  void run_transposed(const Call& call, Team* team) const;
  void run_slice(const Call& call, const Slice& slice, Team* team, int thread) const;
  void run_tile(const Call& call, std::int64_t column, std::int64_t row, const T* part, T* own) const;
  void run_rows(const Call& call, const Slice& slice, std::int64_t row, std::int64_t first, std::int64_t last,
                T* own) const;
  [[nodiscard]] std::int64_t width(std::int64_t columns) const;
  [[nodiscard]] bool aside(std::int64_t columns) const { return tiled_ || width(columns) != columns; }
  void pack(const Call& call, std::int64_t column, std::int64_t begin, std::int64_t end) const;

  Product p_;
  bool packed_ = false;                              // B, in panels of columns_, before it is used
  bool tiled_ = false;                               // C's blocks are made aside
  bool copies_a_ = false, copies_b_ = false;         // A transposed: blocks of either, when they are used
  bool filled_ = false;                              // panels end with columns of zeros that fill a register
  std::int64_t rows_ = 0, columns_ = 0, depth_ = 0;  // sizes of a block
  std::int64_t packed_size_ = 0, sums_size_ = 0;     // scratch of all: panels, sums of slices but the first
  std::int64_t block_b_ = 0, own_ = 0;               // and of each thread, in which B's copied block begins there
  Stretches slices_;                                 // slices of K, each summed by itself
  Stretches panels_;                                 // panels of B, to be packed
  Stretches tiles_;                                  // tiles of C, panel by panel; A transposed: rows of tiles
  Micro micro_[2][2][2][2] = {};                     // [short rows][short columns][short depth][adds]
};

}  // namespace hfta::fusion::cpu
