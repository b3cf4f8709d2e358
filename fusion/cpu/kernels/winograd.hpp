#pragma once
/// Winograd's convolutions F(2x2, 3x3): which they are, and their data passes. Where tiles fill the image they multiply
/// 2.25 times less than a sum over taps. Formulas and their source: winograd_tiles.hpp.
///
/// Some tiles at a time, so that they stay in the second cache, are transformed; for each of the 16 places of a tile a
/// product of matrices [tiles, inputs] x [inputs, outputs] follows; what comes out is transformed back, with bias and
/// relu. A team shares tiles and panels of outputs.
///
/// In float32 its results are as close to those in float64 as a direct convolution's: transforms round more, but sums
/// are shorter. An infinity or NaN in a source pixel makes NaN of all of the tiles that read it, which reach one pixel
/// further than its taps.

#include <algorithm>
#include <vector>

#include "fusion/cpu/kernels/batch_reduce.hpp"
#include "fusion/cpu/kernels/conv.hpp"
#include "fusion/cpu/kernels/winograd_tiles.hpp"

namespace hfta::fusion::cpu {

/// Whether the algorithm computes the passes whose result is x's gradient (`backward`), or y and the weights' gradient.
/// A function of the shape alone: results must not depend on where it runs. It says yes where the algorithm can, and
/// with few exceptions was faster than TapProduct and WeightGradient with AVX2 as well as with AVX-512: from 32
/// channels of x and of y on, for at least 16 tiles of which most pixels lie in the image. That leaves out images of 1,
/// 3 and 5 pixels a side.
[[nodiscard]] bool winograd_pays(const ConvShape& shape, bool backward);

/// forward_taps() or backward_taps() with borders that fill tiles which reach beyond the result.
[[nodiscard]] TapGeometry tile_geometry(const ConvShape& shape, bool backward);
/// Channels of a source that lie together when transformed.
[[nodiscard]] std::int64_t tile_block(std::int64_t channels);

/// An image of result pixels in tiles of 2x2: those at the right and at the bottom may reach beyond it.
struct TileGrid {
  Pair pixels = {};

  [[nodiscard]] std::int64_t rows() const { return (pixels[0] + 1) / 2; }
  [[nodiscard]] std::int64_t columns() const { return (pixels[1] + 1) / 2; }
  [[nodiscard]] std::int64_t tiles() const { return rows() * columns(); }

  /// Calls visit(image, row, column, count, number of the first) for rows of tiles side by side, which are tiles
  /// [first, first + count) of all images.
  template <typename Visit>
  void for_each_row(std::int64_t first, std::int64_t count, const Visit& visit) const {
    for (const std::int64_t end = first + count; first < end;) {
      const std::int64_t in_image = first % tiles(), column = in_image % columns();
      const std::int64_t some = std::min(columns() - column, end - first);
      visit(first / tiles(), in_image / columns(), column, some, first);
      first += some;
    }
  }
};

/// y from x, or the gradient of x from that of y.
template <typename T>
class WinogradProduct final : public DataPass<T> {
 public:
  using typename DataPass<T>::Call;

  /// `shape`: of which winograd_pays(). `backward`, `add`: data_pass(). Throws Error{kConfig} where LIBXSMM makes no
  /// kernels for this processor.
  WinogradProduct(const ConvShape& shape, bool backward, bool add);

  [[nodiscard]] const char* name() const override { return "Winograd"; }
  [[nodiscard]] std::int64_t scratch(int threads) const override;
  [[nodiscard]] bool copies_source() const override { return source_.scratch() > 0; }
  void operator()(const Call& call) const override;

 private:
  struct Chunk {  // of the call's tiles
    std::int64_t first = 0, count = 0;
  };
  void make_kernels();
  [[nodiscard]] std::int64_t panels() const { return (outputs_ + panel_ - 1) / panel_; }
  [[nodiscard]] std::int64_t blocks() const { return (inputs_ + block_ - 1) / block_; }
  [[nodiscard]] std::int64_t kernels_place() const { return inputs_ * panel_ + kTileLanes; }
  [[nodiscard]] std::int64_t source_place() const { return chunk_ * block_ld_ + kTileLanes; }
  [[nodiscard]] std::int64_t result_place() const { return rows_ * panel_ + kTileLanes; }
  void transform_panel(const Call& call, std::int64_t panel, T* to, T* own) const;
  void transform_chunk(const Call& call, const Chunk& chunk, const T* source, T* to) const;
  void multiply(const Call& call, const Chunk& chunk, std::int64_t panel, const T* kernels, const T* source,
                T* own) const;

  TapGeometry g_;
  TileGrid grid_;
  std::int64_t n_, inputs_, outputs_, at_once_;
  std::int64_t panel_, block_, block_ld_;
  std::int64_t rows_ = 0, chunk_ = 0;  // tiles of a product; tiles that are transformed at a time
  bool backward_, add_;
  bool kept_ = false;  // all panels of the kernels are transformed once for all chunks of the batch
  Source source_;
  std::int64_t own_ = 0;                                           // scratch of each thread
  std::vector<std::int64_t> elements_;                             // of the kernel, by tap
  std::vector<unsigned long long> kernel_blocks_, source_blocks_;  // offsets in bytes of whole blocks
  struct Micro {                                                   // by the tiles of a product
    std::int64_t rows = 0;
    BatchReduceKernel<T> whole[2] = {}, rest[2] = {};  // [narrow panel]: whole blocks; the short one, added
  };
  std::vector<Micro> micro_;
};

}  // namespace hfta::fusion::cpu
