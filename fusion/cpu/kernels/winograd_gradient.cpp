#include "fusion/cpu/kernels/winograd_gradient.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/pack.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kPanel = 64;
constexpr std::int64_t kFinished = 16;  // inputs whose sums become gradients at a time
// Elements of tiles, of x and of dy, that are transformed at a time, 512 KiB of float; with many channels at least
// kLeastTiles, that the sums pay for being read.
constexpr std::int64_t kChunk = 131072, kLeastTiles = 64;

// dy is read where it lies if tiles fill it.
TapGeometry gradient_geometry(const ConvShape& s) {
  TapGeometry g;
  g.source = g.result = g.bordered = s.out;
  for (std::int64_t& size : g.bordered) size += size % 2;
  return g;
}

}  // namespace

template <typename T>
WinogradGradient<T>::WinogradGradient(const ConvShape& s, bool add)
    : conv_(s, false),
      inputs_(s.c),
      outputs_(s.o),
      panel_(std::min(kPanel, outputs_)),
      panel_ld_(in_tile_lanes(panel_)),
      block_(tile_block(inputs_)),
      block_ld_(in_tile_lanes(block_)),
      add_(add),
      x_(conv_.geometry, images_at_once(s), inputs_, inputs_),
      dy_(gradient_geometry(s), images_at_once(s), outputs_, outputs_) {
  const std::int64_t all = std::min(images_at_once(s), s.n) * conv_.grid.tiles();
  const std::int64_t tile = conv_.places() * (conv_.parts() * inputs_ + outputs_);
  chunk_ = std::min(std::max(kChunk / tile, kLeastTiles), all);
  kept_ = s.n * conv_.grid.tiles() > chunk_;
  own_ = (add_ ? 2 : 1) * taps() * kFinished * panel_ld_;
  make_kernels(s);
}

template <typename T>
void WinogradGradient<T>::make_kernels(const ConvShape& s) {
  // Chunks have fewer tiles where a call ends, and the last call may have fewer images.
  const std::int64_t at_once = images_at_once(s), calls[] = {std::min(at_once, s.n), s.n % at_once};
  const std::int64_t in_image = conv_.grid.tiles();
  for (const std::int64_t tiles : {chunk_, calls[0] * in_image % chunk_, calls[1] * in_image % chunk_}) {
    const bool known = std::any_of(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.tiles == tiles; });
    if (tiles == 0 || known) continue;
    micro_.push_back({tiles, {}});
    for (const bool narrow : {false, true}) {
      for (const bool shorter : {false, true}) {
        for (const bool adds : {false, true}) {
          const std::int64_t columns = narrow ? outputs_ % panel_ : panel_;
          const std::int64_t rows = shorter ? inputs_ % block_ : block_;
          if (columns == 0 || rows == 0) continue;
          micro_.back().sum[narrow][shorter][adds] = batch_reduce_kernel<T>({.rows = rows,
                                                                             .columns = in_tile_lanes(columns),
                                                                             .depth = tiles,
                                                                             .lda = panel_ld_,
                                                                             .ldb = block_ld_,
                                                                             .ldc = panel_ld_,
                                                                             .b_transposed = true,
                                                                             .add = adds});
        }
      }
    }
  }
}

// Scratch memory of a call, and of finish().
template <typename T>
std::int64_t WinogradGradient<T>::scratch(int threads) const {
  return x_size() + dy_size() + threads * own_ + x_.scratch() + dy_.scratch();
}

template <typename T>
void WinogradGradient<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  const Transformed tiles{call.scratch, call.scratch + x_size()};
  T* const own = tiles.dy + dy_size();
  T* const copies = own + threads * own_;
  const T* const x = x_.prepare(call.team, call.x, call.images, copies);
  const T* const dy = dy_.prepare(call.team, call.dy, call.images, copies + x_.scratch());
  const std::int64_t all = call.images * conv_.grid.tiles(), at_once = kept_ ? pieces() : 1;
  const std::int64_t places = conv_.parts() * conv_.places();
  for (Chunk chunk; chunk.first < all; chunk.first += chunk_) {
    chunk.count = std::min(chunk_, all - chunk.first);
    transform(call, chunk, x, dy, tiles);
    for (std::int64_t first = 0; first < pieces(); first += at_once) {
      const std::int64_t each = chunk.count * block_ * panel_;
      share(call.team, stretches_of(at_once * places, each, 1, kStretchProducts),
            [&](std::int64_t begin, std::int64_t count, int) {
              for (std::int64_t i = begin; i < begin + count; ++i) {
                const std::int64_t p = i / places;
                sum_up(call, chunk, piece(first + p), i % places, tiles, call.sums + p * piece_size());
              }
            });
      if (!kept_) finish_pieces(call, first, 1, call.sums, own);
    }
  }
}

template <typename T>
void WinogradGradient<T>::finish(const Call& call) const {
  if (kept_) finish_pieces(call, 0, pieces(), call.sums, call.scratch);
}

// `sums`: of the first piece on. `own`: scratch of all threads.
template <typename T>
void WinogradGradient<T>::finish_pieces(const Call& call, std::int64_t first, std::int64_t count, const T* sums,
                                        T* own) const {
  const std::int64_t stretches = (block_ + kFinished - 1) / kFinished;  // stretches of a piece
  share(call.team, stretches_of(count * stretches, conv_.parts() * conv_.places() * kFinished * panel_),
        [&](std::int64_t begin, std::int64_t some, int thread) {
          for (std::int64_t i = begin; i < begin + some; ++i) {
            const std::int64_t p = i / stretches;
            finish_inputs(call, piece(first + p), i % stretches * kFinished, sums + p * piece_size(),
                          own + thread * own_);
          }
        });
}

// x: [block, part, place, tile, channel]; dy: [panel, place, tile, channel].
template <typename T>
void WinogradGradient<T>::transform(const Call& call, const Chunk& chunk, const T* x, const T* dy,
                                    const Transformed& to) const {
  const Source::Strides &from_x = x_.strides(), &from_dy = dy_.strides();
  const std::int64_t pixel = from_x.pixel * conv_.geometry.source_step[1];
  share(call.team, stretches_of(chunk.count, conv_.places() * (conv_.parts() * inputs_ + outputs_)),
        [&](std::int64_t first, std::int64_t count, int) {
          conv_.grid.for_each_row(
              chunk.first + first, count,
              [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
                const std::int64_t tile = number - chunk.first;
                TileRow some{.r = conv_.r,
                             .tiles = tiles,
                             .row = from_x.row,
                             .pixel = pixel,
                             .place = x_place(),
                             .tile = block_ld_};
                const T* const pixels_x = x + image * from_x.image + 2 * (row * from_x.row + column * pixel);
                T* at = to.x + tile * block_ld_;
                for (std::int64_t c = 0; c < inputs_; c += block_) {
                  some.channels = std::min(block_, inputs_ - c);
                  for (const TilePart& part : conv_.phases.front().parts) {
                    transform_source(some, pixels_x + x_.offset(part.first) + c, at);
                    at += conv_.places() * x_place();
                  }
                }
                some.row = from_dy.row;
                some.pixel = from_dy.pixel;
                some.place = dy_place();
                some.tile = panel_ld_;
                const T* const pixels_dy =
                    dy + image * from_dy.image + 2 * (row * from_dy.row + column * from_dy.pixel);
                for (std::int64_t o = 0; o < outputs_; o += panel_) {
                  some.channels = std::min(panel_, outputs_ - o);
                  transform_gradient(some, pixels_dy + o,
                                     to.dy + o / panel_ * conv_.places() * dy_place() + tile * panel_ld_);
                }
              });
        });
}

// `place`: of all parts.
template <typename T>
void WinogradGradient<T>::sum_up(const Call& call, const Chunk& chunk, const Piece& piece, std::int64_t place,
                                 const Transformed& tiles, T* sums) const {
  const bool narrow = (piece.panel + 1) * panel_ > outputs_, shorter = (piece.block + 1) * block_ > inputs_;
  const auto micro = std::find_if(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.tiles == chunk.count; });
  constexpr unsigned long long kOne = 1, kNowhere = 0;
  micro->sum[narrow][shorter][!call.begins || chunk.first > 0](
      tiles.dy + (piece.panel * conv_.places() + place % conv_.places()) * dy_place(),
      tiles.x + (piece.block * conv_.parts() * conv_.places() + place) * x_place(), sums + place * sums_place(), &kOne,
      &kNowhere, &kNowhere);
}

// Some inputs of a piece: sums [part, place, input, panel] to [input, tap, panel] to [panel, input, tap].
template <typename T>
void WinogradGradient<T>::finish_inputs(const Call& call, const Piece& piece, std::int64_t input, const T* sums,
                                        T* own) const {
  const std::int64_t first = piece.block * block_ + input;
  const std::int64_t inputs = std::min({kFinished, block_ - input, inputs_ - first});
  if (inputs <= 0) return;
  const std::int64_t output = piece.panel * panel_, width = std::min(panel_, outputs_ - output);
  const std::int64_t rows = inputs * taps(), ld = inputs_ * taps();
  const T* from = sums + input * panel_ld_;
  for (const TilePart& part : conv_.phases.front().parts) {
    const std::int64_t element = part.elements.front();
    finish_kernels({.r = conv_.r,
                    .rows = inputs,
                    .columns = width,
                    .tap_row = taps() * panel_ld_,
                    .beside = (part.elements[1] - element) * panel_ld_,
                    .below = (part.elements[static_cast<std::size_t>(conv_.r)] - element) * panel_ld_,
                    .place_row = panel_ld_,
                    .place = sums_place()},
                   from, own + element * panel_ld_);
    from += conv_.places() * sums_place();
  }
  T* const to = call.dweight + output * ld + first * taps();
  if (!add_) return transpose(own, panel_ld_, rows, width, to, ld);
  add_transposed(own, panel_ld_, rows, width, to, ld, own + own_ / 2);
}

template class WinogradGradient<float>;
template class WinogradGradient<double>;

}  // namespace hfta::fusion::cpu
