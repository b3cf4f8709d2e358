#pragma once
/// Winograd's convolutions F(2x2, r x r): which convolutions are made of them, and their data passes. Formulas and
/// their source: winograd_tiles.hpp.
///
/// The taps of a convolution of stride s fall into parts by their place's remainder by s. Each part is a convolution of
/// stride 1 of every s-th pixel of x in each dimension: y is their sum, and every s-th pixel of x's gradient has one
/// part of its own. Where the kernel has r * s taps in each dimension all parts have r x r. So a convolution of 3x3
/// taps and stride 1 takes 2.25 times fewer products where tiles fill the image, and one of 4x4 and stride 2 1.78 times
/// fewer.
///
/// Some tiles at a time, so that they stay in the second cache, are transformed; for each of the places of a tile a
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

/// Taps of a convolution that are r x r neighbours among every s-th pixel.
struct TilePart {
  Tap first;                           ///< The first tap, as the first result pixel sees it.
  std::vector<std::int64_t> elements;  ///< Positions of the taps in the kernel, row by row.
};

/// A convolution as Winograd's: result pixels of each phase are sums over its parts.
struct TiledConv {
  struct Phase {
    Pair begin = {}, count = {};  ///< See cpu::Phase.
    std::vector<TilePart> parts;
  };

  /// REQUIRES a kernel of r * stride taps in each dimension, r 2 or 3, and winograd_pays().
  TiledConv(const ConvShape& shape, bool backward);

  std::int64_t r = 0;
  TapGeometry geometry;       ///< Its borders fill tiles that reach beyond the result.
  std::vector<Phase> phases;  ///< All have as many parts.
  TileGrid grid;              ///< Tiles of the largest phase.

  [[nodiscard]] std::int64_t places() const { return tile_places(r); }
  [[nodiscard]] std::int64_t parts() const { return static_cast<std::int64_t>(phases.front().parts.size()); }
};

/// Channels of a source that lie together when transformed.
[[nodiscard]] std::int64_t tile_block(std::int64_t channels);

/// y from x, or the gradient of x from that of y.
template <typename T>
class WinogradProduct final : public DataPass<T> {
 public:
  using typename DataPass<T>::Call;

  /// REQUIRES winograd_pays() of `shape`. `backward`, `add`: data_pass(). Throws Error{kConfig} where LIBXSMM makes no
  /// kernels for this processor.
  WinogradProduct(const ConvShape& shape, bool backward, bool add);

  [[nodiscard]] const char* name() const override { return "Winograd"; }
  [[nodiscard]] std::int64_t turned_size() const override { return (kept_ ? phases() * panels() : 1) * kernels_size(); }
  [[nodiscard]] std::int64_t scratch(int threads) const override;
  [[nodiscard]] bool copies_source() const override { return source_.scratch() > 0; }
  void turn(const Call& call) const override;
  void operator()(const Call& call) const override;

 private:
  struct Chunk {  // some of the call's tiles
    std::int64_t first = 0, count = 0;
  };
  struct Micro {  // kernels for a number of tiles
    std::int64_t rows = 0;
    BatchReduceKernel<T> whole[2] = {}, rest[2] = {};  // [narrow panel]: whole blocks; the short ones, added
  };
  struct Blocks {  // offsets in bytes of the blocks of inputs, of all parts
    std::vector<unsigned long long> kernels, source;
  };
  using Phase = TiledConv::Phase;
  void find_blocks();
  void make_kernels(const ConvShape& s);
  [[nodiscard]] std::int64_t panels() const { return (outputs_ + panel_ - 1) / panel_; }
  [[nodiscard]] std::int64_t blocks() const { return (inputs_ + block_ - 1) / block_; }
  [[nodiscard]] std::int64_t phases() const { return static_cast<std::int64_t>(conv_.phases.size()); }
  [[nodiscard]] std::int64_t kernels_place() const { return conv_.parts() * inputs_ * panel_ + kTileLanes; }
  [[nodiscard]] std::int64_t kernels_size() const { return conv_.places() * kernels_place(); }  // a panel's, of a phase
  [[nodiscard]] std::int64_t source_place() const { return chunk_ * block_ld_ + kTileLanes; }
  [[nodiscard]] std::int64_t source_size() const { return conv_.parts() * blocks() * conv_.places() * source_place(); }
  [[nodiscard]] std::int64_t result_place() const { return rows_ * panel_ + kTileLanes; }
  void transform_panel(const Call& call, std::int64_t panel, T* to, T* own) const;
  void transform_chunk(const Call& call, const Phase& phase, const Chunk& chunk, const T* source, T* to) const;
  void multiply(const Chunk& chunk, std::int64_t panel, const T* kernels, const T* source, T* own) const;
  void write(const Call& call, const Phase& phase, const Chunk& chunk, std::int64_t panel, const T* own) const;

  TiledConv conv_;
  std::int64_t inputs_, outputs_;
  std::int64_t panel_, block_, block_ld_;
  std::int64_t rows_ = 0, chunk_ = 0;  // tiles of a product; tiles that are transformed at a time
  bool backward_, add_;
  bool kept_ = false;  // all panels of the kernels are transformed once, for all chunks and phases of the batch
  Source source_;
  std::int64_t own_ = 0;                // scratch of each thread
  std::vector<std::int64_t> elements_;  // elements of the kernel: phase by phase, part by part
  Blocks whole_, rest_;
  std::vector<Micro> micro_;
};

}  // namespace hfta::fusion::cpu
