#pragma once
/// The gradient of the weights of Winograd's convolutions (winograd.hpp): for each part of the taps and each of a
/// tile's places a matrix product of source and gradient, over all tiles. A team shares places and blocks of channels,
/// so that each sum has one owner.

#include <vector>

#include "fusion/cpu/kernels/winograd.hpp"

namespace hfta::fusion::cpu {

template <typename T>
class WinogradGradient final : public WeightPass<T> {
 public:
  using typename WeightPass<T>::Call;

  /// REQUIRES winograd_pays() of `shape`. `add`: to what is there. Throws Error{kConfig} where LIBXSMM makes no kernels
  /// for this processor.
  WinogradGradient(const ConvShape& shape, bool add);

  [[nodiscard]] const char* name() const override { return "Winograd"; }
  [[nodiscard]] std::int64_t sums_size() const override { return (kept_ ? pieces() : 1) * piece_size(); }
  [[nodiscard]] std::int64_t scratch(int threads) const override;
  void operator()(const Call& call) const override;
  void finish(const Call& call) const override;

 private:
  struct Chunk {  // some of the call's tiles
    std::int64_t first = 0, count = 0;
  };
  struct Piece {  // piece of the weights: a panel of outputs times a block of inputs
    std::int64_t panel = 0, block = 0;
  };
  struct Transformed {  // tiles of a chunk
    T *x = nullptr, *dy = nullptr;
  };
  void make_kernels(const ConvShape& s);
  [[nodiscard]] std::int64_t panels() const { return (outputs_ + panel_ - 1) / panel_; }
  [[nodiscard]] std::int64_t blocks() const { return (inputs_ + block_ - 1) / block_; }
  [[nodiscard]] std::int64_t pieces() const { return panels() * blocks(); }
  [[nodiscard]] Piece piece(std::int64_t number) const { return {number / blocks(), number % blocks()}; }
  [[nodiscard]] std::int64_t taps() const { return conv_.parts() * conv_.r * conv_.r; }
  [[nodiscard]] std::int64_t x_place() const { return chunk_ * block_ld_ + kTileLanes; }
  [[nodiscard]] std::int64_t x_size() const { return blocks() * conv_.parts() * conv_.places() * x_place(); }
  [[nodiscard]] std::int64_t dy_place() const { return chunk_ * panel_ld_ + kTileLanes; }
  [[nodiscard]] std::int64_t dy_size() const { return panels() * conv_.places() * dy_place(); }
  [[nodiscard]] std::int64_t sums_place() const { return block_ * panel_ld_ + kTileLanes; }
  [[nodiscard]] std::int64_t piece_size() const { return conv_.parts() * conv_.places() * sums_place(); }
  void transform(const Call& call, const Chunk& chunk, const T* x, const T* dy, const Transformed& to) const;
  void sum_up(const Call& call, const Chunk& chunk, const Piece& piece, std::int64_t place, const Transformed& tiles,
              T* sums) const;
  void finish_pieces(const Call& call, std::int64_t first, std::int64_t count, const T* sums, T* own) const;
  void finish_inputs(const Call& call, const Piece& piece, std::int64_t input, const T* sums, T* own) const;

  TiledConv conv_;
  std::int64_t inputs_, outputs_;
  std::int64_t panel_, panel_ld_, block_, block_ld_;
  std::int64_t chunk_ = 0;
  bool add_;
  bool kept_ = false;  // the sums of all pieces are kept from chunk to chunk, and from call to call
  Source x_, dy_;
  std::int64_t own_ = 0;  // scratch of each thread
  struct Micro {          // kernels for a number of tiles
    std::int64_t tiles = 0;
    BatchReduceKernel<T> sum[2][2][2] = {};  // [narrow panel][short block][adds]
  };
  std::vector<Micro> micro_;
};

}  // namespace hfta::fusion::cpu
