#pragma once
/// Matrix products on one core: LIBXSMM's kernels, made at run time for the very shapes, in blocks that fit the caches.

#include <cstdint>
#include <functional>

namespace hfta::fusion::cpu {

/// C [M, N] = A [M, K] B [K, N], row-major with leading dimensions in elements.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool a_transposed = false;  ///< A lies as [K, M].
  bool b_transposed = false;  ///< B lies as [N, K].
  bool add = false;           ///< C += A B.
};

/// T: float, double. Immutable; many threads may call one.
template <typename T>
class Gemm {
 public:
  /// Throws Error{kConfig} where LIBXSMM makes no kernels for this processor.
  explicit Gemm(const Product& product);

  /// Elements of scratch memory that a call needs.
  [[nodiscard]] std::int64_t scratch() const { return scratch_; }

  /// Called for each finished block of C, while it is in the cache: its corner with a leading dimension, its first
  /// column, rows and columns. What it changes is C's.
  using Done =
      std::function<void(T* corner, std::int64_t ld, std::int64_t column, std::int64_t rows, std::int64_t columns)>;
  void operator()(const T* a, const T* b, T* c, T* scratch) const { run(a, b, c, scratch, nullptr); }
  void operator()(const T* a, const T* b, T* c, T* scratch, const Done& done) const { run(a, b, c, scratch, &done); }

 private:
  using Micro = void (*)(const T* b, const T* a, T* c, ...);
  void run(const T* a, const T* b, T* c, T* scratch, const Done* done) const;
  void run_transposed(const T* a, const T* b, T* c, T* scratch, const Done* done) const;
  [[nodiscard]] std::int64_t width(std::int64_t columns) const;
  [[nodiscard]] bool aside(std::int64_t columns) const { return tiled_ || width(columns) != columns; }
  [[nodiscard]] const T* panel(const T* b, std::int64_t column, T* scratch) const;

  Product p_;
  bool packed_ = false;                              // B, in panels of columns_
  bool tiled_ = false;                               // C's blocks are made aside
  bool blocked_ = false;                             // A's blocks are copied
  bool filled_ = false;                              // panels end with columns of zeros that fill a register
  std::int64_t rows_ = 0, columns_ = 0, depth_ = 0;  // of a block
  std::int64_t packed_size_ = 0, scratch_ = 0;
  Micro micro_[2][2][2][2] = {};  // [short rows][short columns][short depth][adds]
};

}  // namespace hfta::fusion::cpu
