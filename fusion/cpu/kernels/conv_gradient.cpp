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

// Channels of a block: fewer if there is one tap, since a team then shares blocks.
std::int64_t block_of(std::int64_t inputs, std::int64_t taps) {
  const std::int64_t block = taps == 1 ? kBlock / 2 : kBlock;
  return inputs <= block * 3 / 2 ? inputs : block;
}

}  // namespace

template <typename T>
WeightGradient<T>::WeightGradient(const ConvShape& s, bool add)
    : g_(forward_taps(s)),
      groups_(s.groups),
      elements_(s.taps()),
      inputs_(s.c / s.groups),
      outputs_(s.o / s.groups),
      panel_(panel_of(s)),
      block_(block_of(inputs_, elements_)),
      at_once_(images_at_once(s)),
      kept_(at_once_ < s.n),
      add_(add),
      few_(has_few_channels(s)),
      packed_(s.o > panel_),
      source_(g_, at_once_, s.c, s.groups == 1 ? block_ : s.c) {
  const Source::Strides& strides = source_.strides();
  dy_pixel_ = packed_ ? panel_ : s.o;
  rows_ = std::max<std::int64_t>(kPixels / s.out[1], 1);
  ld_ = few_ ? (panel_ + kFewOutputs - 1) / kFewOutputs * kFewOutputs : panel_;
  piece_size_ = whole_lines(block_ * elements_ * ld_);
  places_ = (kept_ ? groups_ * ((outputs_ + panel_ - 1) / panel_) : 1) * blocks();
  for (std::int64_t i = 0; i < at_once_; ++i) {
    for (std::int64_t h = 0; h < s.out[0]; ++h) {
      x_.push_back(static_cast<unsigned long long>(i * strides.image + h * strides.row) * sizeof(T));
      dy_.push_back(static_cast<unsigned long long>((i * s.out[0] + h) * s.out[1] * dy_pixel_) * sizeof(T));
    }
  }
  few_ ? make_row(s) : make_kernels(s);
}

// The elements of each tap's channels that a row of dy sees, in the order of the gradient's own elements.
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

// Scratch memory of a call, and of finish().
template <typename T>
std::int64_t WeightGradient<T>::scratch(int threads) const {
  const std::int64_t packed = packed_ ? at_once_ * g_.result[0] * g_.result[1] * panel_ : 0;
  return (add_ ? threads * piece_size_ : 0) + packed + source_.scratch();
}

// Calls visit(piece, sums of the panel's blocks) with the first piece of each panel.
template <typename T>
template <typename Visit>
void WeightGradient<T>::for_each_panel(T* sums, const Visit& visit) const {
  Piece piece;
  for (piece.group = 0; piece.group < groups_; ++piece.group) {
    for (piece.panel = 0; piece.panel < outputs_; piece.panel += panel_) {
      visit(piece, sums);
      if (kept_) sums += blocks() * piece_size_;
    }
  }
}

template <typename T>
void WeightGradient<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  T* const panel = call.scratch + (add_ ? threads * piece_size_ : 0);
  T* const copies = panel + (packed_ ? at_once_ * g_.result[0] * g_.result[1] * panel_ : 0);
  const T* const x = source_.prepare(call.team, call.x, call.images, copies);
  for_each_panel(call.sums, [&](const Piece& piece, T* sums) {
    const T* const dy = packed(piece, call, panel);
    few_ ? sum_up_few(piece, call, x, dy, sums) : sum_up(piece, call, x, dy, sums);
    if (!kept_) finish_panel(piece, call, sums);
  });
}

template <typename T>
void WeightGradient<T>::finish(const Call& call) const {
  if (kept_) for_each_panel(call.sums, [&](const Piece& piece, T* sums) { finish_panel(piece, call, sums); });
}

template <typename T>
void WeightGradient<T>::finish_panel(const Piece& piece, const Call& call, const T* sums) const {
  share(call.team, stretches_of(blocks(), piece_size_), [&](std::int64_t first, std::int64_t count, int thread) {
    for (std::int64_t b = first; b < first + count; ++b) {
      turn({piece.group, piece.panel, b * block_}, sums + b * piece_size_, call.dweight,
           call.scratch + thread * piece_size_);
    }
  });
}

// The panel's channels of dy, pixel behind pixel.
template <typename T>
const T* WeightGradient<T>::packed(const Piece& piece, const Call& call, T* scratch) const {
  const std::int64_t pixels = g_.result[0] * g_.result[1], all = outputs_ * groups_;
  const T* const dy = call.dy + piece.group * outputs_ + piece.panel;
  if (!packed_) return dy;
  const std::int64_t width = std::min(panel_, outputs_ - piece.panel);
  share(call.team, stretches_of(call.images * pixels, panel_), [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t p = first; p < first + count; ++p) std::copy_n(dy + p * all, width, scratch + p * panel_);
  });
  return scratch;
}

// All blocks of a panel. A stretch is some taps of one block.
template <typename T>
void WeightGradient<T>::sum_up(const Piece& piece, const Call& call, const T* x, const T* dy, T* sums) const {
  const auto taps = static_cast<std::int64_t>(g_.phases.front().taps.size());
  const std::int64_t each = call.images * g_.result[0] * g_.result[1] * block_ * panel_;
  const Stretches of_block = stretches_of(taps, each, 1, kStretchProducts);
  share(call.team, blocks() * of_block.count(), [&](std::int64_t stretch, int) {
    const std::int64_t block = stretch / of_block.count(), some = stretch % of_block.count();
    sum_up_taps({piece.group, piece.panel, block * block_}, call, x, dy, static_cast<std::size_t>(of_block.begin(some)),
                static_cast<std::size_t>(of_block.size(some)), sums + block * piece_size_);
  });
}

template <typename T>
void WeightGradient<T>::sum_up_taps(const Piece& piece, const Call& call, const T* x, const T* dy, std::size_t first,
                                    std::size_t count, T* sums) const {
  const bool narrow = outputs_ - piece.panel < panel_, shorter = inputs_ - piece.block < block_;
  const Source::Strides& strides = source_.strides();
  const T* const block =
      x + (groups_ == 1 ? piece.block / block_ * strides.block : piece.group * inputs_ + piece.block);
  const std::int64_t rows = call.images * g_.result[0];
  for (std::int64_t r = 0; r < rows; r += rows_) {
    const auto some = static_cast<unsigned long long>(std::min(rows_, rows - r));
    const BatchReduceKernel<T> micro = micro_[narrow][shorter][!call.begins || r > 0];
    for (std::size_t t = first; t < first + count; ++t) {
      const Tap& tap = g_.phases.front().taps[t];
      micro(dy, block + source_.offset(tap), sums + tap.element * panel_, &some, dy_.data() + r, x_.data() + r);
    }
  }
}

// A stretch is some outputs.
template <typename T>
void WeightGradient<T>::sum_up_few(const Piece& piece, const Call& call, const T* x, const T* dy, T* sums) const {
  const std::int64_t width = std::min(panel_, outputs_ - piece.panel);
  const std::int64_t pixels = call.images * g_.result[0] * g_.result[1];
  if (call.begins) std::fill_n(sums, piece_size_, T{0});
  const Source::Strides& strides = source_.strides();
  share(call.team,
        stretches_of(width, pixels * static_cast<std::int64_t>(row_.terms.size()), kFewOutputs, kStretchProducts),
        [&](std::int64_t first, std::int64_t outputs, int) {
          const T* d = dy + first;
          for (std::int64_t i = 0; i < call.images; ++i) {
            for (std::int64_t h = 0; h < g_.result[0]; ++h, d += row_.pixels * dy_pixel_) {
              few_gradient(row_, x + i * strides.image + h * strides.row, d, outputs, sums + first);
            }
          }
        });
}

// [inputs, elements, ld] to [panel, inputs, elements].
template <typename T>
void WeightGradient<T>::turn(const Piece& piece, const T* sums, T* dweight, T* scratch) const {
  const std::int64_t inputs = std::min(block_, inputs_ - piece.block), width = std::min(panel_, outputs_ - piece.panel);
  const std::int64_t rows = inputs * elements_, ld = inputs_ * elements_;
  T* const to = dweight + ((piece.group * outputs_ + piece.panel) * inputs_ + piece.block) * elements_;
  if (!add_) return transpose(sums, ld_, rows, width, to, ld);
  add_transposed(sums, ld_, rows, width, to, ld, scratch);
}

template class WeightGradient<float>;
template class WeightGradient<double>;

}  // namespace hfta::fusion::cpu
