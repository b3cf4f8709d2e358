#pragma once
/// The data passes of a convolution: each result pixel is a sum over taps of a source pixel times a matrix of weights.
/// A team shares rows of pixels.

#include <vector>

#include "fusion/cpu/kernels/batch_reduce.hpp"
#include "fusion/cpu/kernels/conv_few.hpp"
#include "fusion/cpu/kernels/conv_geometry.hpp"
#include "fusion/cpu/kernels/conv_layout.hpp"
#include "fusion/cpu/kernels/conv_pass.hpp"

namespace hfta::fusion::cpu {

/// Source pixels, channels last, as kernels read them: where they lie, or copied with a border.
class Source {
 public:
  /// Elements from one block of channels, image, row, pixel, tap to the next.
  struct Strides {
    std::int64_t block = 0, image = 0, row = 0, pixel = 0;
  };

  /// `block`: channels that a kernel reads of a pixel, of all `channels`; blocks are kept apart where that helps.
  Source(TapGeometry geometry, std::int64_t images, std::int64_t channels, std::int64_t block);

  [[nodiscard]] const Strides& strides() const { return strides_; }
  [[nodiscard]] std::int64_t scratch() const { return bordered_; }
  /// Offset of a tap from the pixel's place.
  [[nodiscard]] std::int64_t offset(const Tap& tap) const { return tap.at[0] * row_ + tap.at[1] * strides_.pixel; }
  /// The first pixel that kernels read.
  template <typename T>
  [[nodiscard]] const T* prepare(Team* team, const T* from, std::int64_t images, T* scratch) const;

 private:
  TapGeometry g_;
  std::int64_t images_, channels_, block_;
  bool copied_;
  Strides strides_;
  std::int64_t row_ = 0;       // elements from row to row of the bordered source
  std::int64_t bordered_ = 0;  // elements of scratch
};

/// A sum of products with a depth of so few channels is slower than conv_few.hpp.
[[nodiscard]] bool has_few_channels(const ConvShape& shape);

/// A data pass whose products are of a source pixel with each tap's weights.
template <typename T>
class TapProduct final : public DataPass<T> {
 public:
  using typename DataPass<T>::Call;

  TapProduct(const ConvShape& shape, bool backward, bool add);

  [[nodiscard]] const char* name() const override { return few_ ? "few channels" : "direct"; }
  [[nodiscard]] std::int64_t turned_size() const override { return pieces_ * piece_size_; }
  [[nodiscard]] std::int64_t scratch(int threads) const override;
  [[nodiscard]] bool copies_source() const override { return source_.scratch() > 0; }
  void turn(const Call& call) const override;
  void operator()(const Call& call) const override;

 private:
  struct Place {  // place of a row of result pixels: its image, phase, and row in that
    std::int64_t image = 0;
    std::size_t phase = 0;
    std::int64_t row = 0;
  };
  struct PhaseKernels {
    BatchReduceKernel<T> micro[2][2][2] = {};          // [narrow panel][short block][adds]
    std::vector<unsigned long long> weights, sources;  // offsets in bytes, by tap
    std::vector<std::int64_t> elements;
    std::int64_t first_tap = 0;
  };
  struct Piece {  // piece of the weights: a group's panel of outputs times a block of inputs
    std::int64_t group = 0, panel = 0, block = 0;
  };
  void make_kernels();
  void make_row();
  void count_rows();
  template <typename Visit>
  void for_each_piece(T* turned, const Visit& visit) const;
  void turn_piece(const Piece& piece, const Call& call, T* to) const;
  void apply(const Piece& piece, const Call& call, const T* source, const T* weights) const;
  void apply_row(const Piece& piece, const Place& at, const Call& call, const T* source, const T* weights) const;

  TapGeometry g_;
  std::int64_t groups_, elements_;
  std::int64_t inputs_, outputs_;  // channels of a group
  std::int64_t panel_, block_;
  std::int64_t ld_ = 0;  // leading dimension of the turned weights
  bool kept_;            // all pieces are turned before the batch
  bool backward_, add_, few_;
  Source source_;
  std::vector<PhaseKernels> phases_;
  FewPixels<T> row_;  // if few_
  std::int64_t piece_size_ = 0, pieces_ = 1;
  std::int64_t rows_ = 0;      // rows of an image, in all phases
  std::int64_t products_ = 0;  // products of a row in a piece, on average
};

}  // namespace hfta::fusion::cpu
