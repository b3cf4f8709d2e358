#pragma once
/// The gradient of a convolution's weights: for each tap a product of what it saw of x with the gradient of y. A team
/// shares taps and blocks of channels, so that each sum has one owner.

#include <vector>

#include "fusion/cpu/kernels/conv.hpp"

namespace hfta::fusion::cpu {

template <typename T>
class WeightGradient final : public WeightPass<T> {
 public:
  using typename WeightPass<T>::Call;

  /// `add`: to what is there. Throws Error{kConfig} where LIBXSMM makes no kernels for this processor.
  WeightGradient(const ConvShape& shape, bool add);

  [[nodiscard]] const char* name() const override { return few_ ? "few channels" : "direct"; }
  [[nodiscard]] std::int64_t sums_size() const override { return places_ * piece_size_; }
  [[nodiscard]] std::int64_t scratch(int threads) const override;
  void operator()(const Call& call) const override;
  void finish(const Call& call) const override;

 private:
  struct Piece {  // piece of the weights: a group's panel of outputs times a block of inputs
    std::int64_t group = 0, panel = 0, block = 0;
  };
  void make_kernels(const ConvShape& s);
  void make_row(const ConvShape& s);
  [[nodiscard]] std::int64_t blocks() const { return (inputs_ + block_ - 1) / block_; }
  template <typename Visit>
  void for_each_panel(T* sums, const Visit& visit) const;
  const T* packed(const Piece& piece, const Call& call, T* scratch) const;
  void sum_up_few(const Piece& piece, const Call& call, const T* x, const T* dy, T* sums) const;
  void sum_up(const Piece& piece, const Call& call, const T* x, const T* dy, T* sums) const;
  void sum_up_taps(const Piece& piece, const Call& call, const T* x, const T* dy, std::size_t first, std::size_t count,
                   T* sums) const;
  void finish_panel(const Piece& piece, const Call& call, const T* sums) const;
  void turn(const Piece& piece, const T* sums, T* dweight, T* scratch) const;

  TapGeometry g_;
  std::int64_t groups_, elements_;
  std::int64_t inputs_, outputs_;  // channels of a group
  std::int64_t panel_, block_, at_once_;
  bool kept_;  // the sums of all pieces are kept from call to call
  bool add_, few_, packed_;
  Source source_;
  std::int64_t rows_ = 1;      // rows of pixels that a call reduces
  std::int64_t ld_ = 0;        // leading dimension of the sums
  FewPixels<T> row_;           // if few_
  std::int64_t dy_pixel_ = 0;  // elements from one pixel of dy's panel to the next
  std::int64_t piece_size_ = 0;
  std::int64_t places_ = 0;                   // pieces that have sums: all, or those of a panel if not kept_
  BatchReduceKernel<T> micro_[2][2][2] = {};  // [narrow panel][short block][adds]
  std::vector<unsigned long long> x_, dy_;    // offsets in bytes of each row, from the first image of a call
};

}  // namespace hfta::fusion::cpu
