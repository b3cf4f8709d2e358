#pragma once
/// The transforms of Winograd's convolutions F(2x2, r x r), r = 2 or 3: A. Lavin, S. Gray, Fast Algorithms for
/// Convolutional Neural Networks, CVPR 2016, section 4.1. A tile of 2x2 result pixels y is made of a tile of s x s
/// source pixels d, s = r + 1, and the kernel g of r x r taps:
///
///   y = A^T [(G g G^T) . (B^T d B)] A
///
///   r = 3:  B^T = [1  0 -1  0]    G = [ 1    0    0 ]    A^T = [1  1  1  0]
///                 [0  1  1  0]        [1/2  1/2  1/2]          [0  1 -1 -1]
///                 [0 -1  1  0]        [1/2 -1/2  1/2]
///                 [0  1  0 -1]        [ 0    0    1 ]
///
///   r = 2:  B^T = [1 -1  0]       G = [1  0]             A^T = [1  1  0]
///                 [0  1  0]           [1  1]                   [0  1  1]
///                 [0 -1  1]           [0  1]
///
/// with products of elements: 16 in place of 36, and 9 in place of 16. As that is linear in g, the gradient of g from
/// that of y is G^T [(A dy A^T) . (B^T d B)] G.
///
/// The s x s elements of a transformed tile, its places, lie `place` elements apart. Of each, the channels lie side by
/// side, and behind them zeros up to a multiple of kTileLanes.

#include <cstdint>

namespace hfta::fusion::cpu {

/// Places of a tile, for kernels of r x r taps.
[[nodiscard]] constexpr std::int64_t tile_places(std::int64_t r) { return (r + 1) * (r + 1); }

constexpr std::int64_t kTileLanes = 16;
/// Elements that the channels of a transformed pixel take.
[[nodiscard]] constexpr std::int64_t in_tile_lanes(std::int64_t channels) {
  return (channels + kTileLanes - 1) / kTileLanes * kTileLanes;
}

/// Tiles side by side in an image whose channels are last. Strides in elements.
struct TileRow {
  std::int64_t r = 3;  ///< Taps along each side of the kernel.
  std::int64_t tiles = 0, channels = 0;
  std::int64_t row = 0, pixel = 0;   ///< Strides of the image; a tile begins 2 pixels after the one before.
  std::int64_t place = 0, tile = 0;  ///< Strides of the transformed tiles.
};

/// `to` = B^T d B. `from`: the first tile's first source pixel.
void transform_source(const TileRow& row, const float* from, float* to);
void transform_source(const TileRow& row, const double* from, double* to);
/// `to` = A dy A^T. `from`: the first tile's first pixel.
void transform_gradient(const TileRow& row, const float* from, float* to);
void transform_gradient(const TileRow& row, const double* from, double* to);

/// The pixels of the image that tiles are for.
struct TileResult {
  std::int64_t rows = 2, columns = 0;  ///< Size of the image, from the first tile's first pixel on.
  bool add = false;                    ///< Results are added to what is there, and do not replace it.
};
/// `to` = A^T m A for the transformed tiles m in `from`. `to`: the first tile's first pixel.
void transform_result(const TileRow& row, const TileResult& result, const float* from, float* to);
void transform_result(const TileRow& row, const TileResult& result, const double* from, double* to);

/// Kernels: rows of `columns` elements, for each tap and for each place. Strides in elements.
struct TileKernels {
  std::int64_t r = 3;
  std::int64_t rows = 0, columns = 0;
  std::int64_t tap_row = 0, beside = 0, below = 0;  ///< Strides of taps: to the next row, the tap to the right, below.
  std::int64_t place_row = 0, place = 0;            ///< Strides of places: to the next row, the next place.
};
/// places = G taps G^T.
void transform_kernels(const TileKernels& kernels, const float* taps, float* places);
void transform_kernels(const TileKernels& kernels, const double* taps, double* places);
/// taps = G^T places G.
void finish_kernels(const TileKernels& kernels, const float* places, float* taps);
void finish_kernels(const TileKernels& kernels, const double* places, double* taps);

}  // namespace hfta::fusion::cpu
