#include "fusion/cpu/kernels/conv_gradient.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/pack.hpp"

namespace hfta::fusion::cpu {
namespace {

// A panel of dy's rows, at most 64 pixels of 64 channels, is read again for every few columns of x: it stays in the
// first cache, the sums in the second.
constexpr std::int64_t kPanel = 64, kBlock = 64, kPixels = 64;

// Short rows: fewer channels and more columns at once are read less often.
std::int64_t panel_of(const ConvShape& s) { return std::min(s.out[1] < 16 ? kPanel / 2 : kPanel, s.o / s.groups); }

std::int64_t block_of(std::int64_t inputs) { return inputs <= kBlock * 3 / 2 ? inputs : kBlock; }

std::int64_t rounded(std::int64_t elements) { return (elements + 15) / 16 * 16; }

}  // namespace

template <typename T>
WeightGradient<T>::WeightGradient(const ConvShape& s, bool add)
    : g_(forward_taps(s)),
      n_(s.n),
      groups_(s.groups),
      elements_(s.taps()),
      inputs_(s.c / s.groups),
      outputs_(s.o / s.groups),
      panel_(panel_of(s)),
      block_(block_of(inputs_)),
      at_once_(images_at_once(s)),
      add_(add),
      few_(has_few_channels(s)),
      packed_(s.o > panel_),
      source_(g_, at_once_, s.c, s.groups == 1 ? block_ : s.c) {
  const Source::Strides& strides = source_.strides();
  dy_pixel_ = packed_ ? panel_ : s.o;
  rows_ = std::max<std::int64_t>(kPixels / s.out[1], 1);
  ld_ = few_ ? (panel_ + kFewOutputs - 1) / kFewOutputs * kFewOutputs : panel_;
  piece_size_ = rounded(block_ * elements_ * ld_);
  pieces_ = at_once_ >= n_ ? 1 : groups_ * ((outputs_ + panel_ - 1) / panel_) * ((inputs_ + block_ - 1) / block_);
  for (std::int64_t i = 0; i < at_once_; ++i) {
    for (std::int64_t h = 0; h < s.out[0]; ++h) {
      x_.push_back(static_cast<unsigned long long>(i * strides.image + h * strides.row) * sizeof(T));
      dy_.push_back(static_cast<unsigned long long>((i * s.out[0] + h) * s.out[1] * dy_pixel_) * sizeof(T));
    }
  }
  few_ ? make_row(s) : make_kernels(s);
}

// What a row of dy sees of each tap's channels, in the order of the gradient's own elements.
template <typename T>
void WeightGradient<T>::make_row(const ConvShape& s) {
  for (std::int64_t c = 0; c < inputs_; ++c) {
    for (const Tap& tap : g_.phases.front().taps) row_.terms.push_back(source_.offset(tap) + c);
  }
  row_.pixels = s.out[1];
  row_.step = source_.strides().pixel * s.stride[1];
  row_.width = ld_;
  row_.ld = dy_pixel_;
}

template <typename T>
void WeightGradient<T>::make_kernels(const ConvShape& s) {
  const Source::Strides& strides = source_.strides();
  for (const bool narrow : {false, true}) {
    for (const bool shorter : {false, true}) {
      for (const bool adds : {false, true}) {
        const std::int64_t columns = narrow ? outputs_ % panel_ : panel_;
        const std::int64_t rows = shorter ? inputs_ % block_ : block_;
        if (columns == 0 || rows == 0) continue;
        micro_[narrow][shorter][adds] = batch_reduce_kernel<T>({.rows = rows,
                                                                .columns = columns,
                                                                .depth = s.out[1],
                                                                .lda = dy_pixel_,
                                                                .ldb = strides.pixel * s.stride[1],
                                                                .ldc = panel_ * elements_,
                                                                .b_transposed = true,
                                                                .add = adds});
      }
    }
  }
}

template <typename T>
std::int64_t WeightGradient<T>::scratch() const {
  const std::int64_t packed = packed_ ? at_once_ * g_.result[0] * g_.result[1] * panel_ : 0;
  return (pieces_ + 1) * piece_size_ + packed + source_.scratch();
}

template <typename T>
void WeightGradient<T>::operator()(const Call& call) const {
  const std::int64_t pixels = g_.result[0] * g_.result[1], all = outputs_ * groups_;
  T* const turning = call.scratch + pieces_ * piece_size_;
  T* const packed = turning + piece_size_;
  T* const copies = packed + (packed_ ? at_once_ * pixels * panel_ : 0);
  const T* const x =
      source_.prepare(call.x + call.first * g_.source[0] * g_.source[1] * inputs_ * groups_, call.images, copies);
  T* sums = call.scratch;
  Piece piece;
  for (piece.group = 0; piece.group < groups_; ++piece.group) {
    for (piece.panel = 0; piece.panel < outputs_; piece.panel += panel_) {
      const T* dy = call.dy + call.first * pixels * all + piece.group * outputs_ + piece.panel;
      if (packed_) {
        const std::int64_t width = std::min(panel_, outputs_ - piece.panel);
        for (std::int64_t p = 0; p < call.images * pixels; ++p) std::copy_n(dy + p * all, width, packed + p * panel_);
        dy = packed;
      }
      for (piece.block = 0; piece.block < inputs_; piece.block += block_) {
        sum_up(piece, x, dy, call.first > 0, call.images, sums);
        if (call.first + call.images >= n_) turn(piece, sums, call.dweight, turning);
        if (pieces_ > 1) sums += piece_size_;
      }
    }
  }
}

template <typename T>
void WeightGradient<T>::sum_up(const Piece& piece, const T* x, const T* dy, bool add, std::int64_t images,
                               T* sums) const {
  const bool narrow = outputs_ - piece.panel < panel_, shorter = inputs_ - piece.block < block_;
  const Source::Strides& strides = source_.strides();
  const T* const block =
      x + (groups_ == 1 ? piece.block / block_ * strides.block : piece.group * inputs_ + piece.block);
  const std::int64_t rows = images * g_.result[0];
  if (few_) return sum_up_few(x, dy, add, images, std::min(panel_, outputs_ - piece.panel), sums);
  for (std::int64_t r = 0; r < rows; r += rows_) {
    const unsigned long long count = static_cast<unsigned long long>(std::min(rows_, rows - r));
    const BatchReduceKernel<T> micro = micro_[narrow][shorter][add || r > 0];
    for (const Tap& tap : g_.phases.front().taps) {
      micro(dy, block + source_.offset(tap), sums + tap.element * panel_, &count, dy_.data() + r, x_.data() + r);
    }
  }
}

template <typename T>
void WeightGradient<T>::sum_up_few(const T* x, const T* dy, bool add, std::int64_t images, std::int64_t outputs,
                                   T* sums) const {
  if (!add) std::fill_n(sums, piece_size_, T{0});
  const Source::Strides& strides = source_.strides();
  for (std::int64_t i = 0; i < images; ++i) {
    for (std::int64_t h = 0; h < g_.result[0]; ++h, dy += row_.pixels * dy_pixel_) {
      few_gradient(row_, x + i * strides.image + h * strides.row, dy, outputs, sums);
    }
  }
}

// [inputs, elements, ld] to [panel, inputs, elements].
template <typename T>
void WeightGradient<T>::turn(const Piece& piece, const T* sums, T* dweight, T* scratch) const {
  const std::int64_t inputs = std::min(block_, inputs_ - piece.block), width = std::min(panel_, outputs_ - piece.panel);
  const std::int64_t rows = inputs * elements_, ld = inputs_ * elements_;
  T* const to = dweight + ((piece.group * outputs_ + piece.panel) * inputs_ + piece.block) * elements_;
  if (!add_) return transpose(sums, ld_, rows, width, to, ld);
  transpose(sums, ld_, rows, width, scratch, rows);
  for (std::int64_t o = 0; o < width; ++o) {
    for (std::int64_t i = 0; i < rows; ++i) to[o * ld + i] += scratch[o * rows + i];
  }
}

template class WeightGradient<float>;
template class WeightGradient<double>;

}  // namespace hfta::fusion::cpu
