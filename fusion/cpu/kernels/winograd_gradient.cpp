#include "fusion/cpu/kernels/winograd_gradient.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/pack.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kPanel = 64, kTaps = 9;
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
    : g_(tile_geometry(s, false)),
      grid_{s.out},
      n_(s.n),
      inputs_(s.c),
      outputs_(s.o),
      at_once_(images_at_once(s)),
      panel_(std::min(kPanel, outputs_)),
      panel_ld_(in_tile_lanes(panel_)),
      block_(tile_block(inputs_)),
      block_ld_(in_tile_lanes(block_)),
      add_(add),
      x_(g_, at_once_, inputs_, inputs_),
      dy_(gradient_geometry(s), at_once_, outputs_, outputs_) {
  const std::int64_t all = std::min(at_once_, n_) * grid_.tiles();
  chunk_ = std::min(std::max(kChunk / (kTilePlaces * (inputs_ + outputs_)), kLeastTiles), all);
  kept_ = n_ * grid_.tiles() > chunk_;
  own_ = (add_ ? 2 : 1) * kTaps * kFinished * panel_ld_;
  make_kernels();
}

template <typename T>
void WinogradGradient<T>::make_kernels() {
  // Chunks have fewer tiles where a call ends, and the last call may have fewer images.
  const std::int64_t calls[] = {std::min(at_once_, n_), n_ % at_once_};
  for (const std::int64_t tiles : {chunk_, calls[0] * grid_.tiles() % chunk_, calls[1] * grid_.tiles() % chunk_}) {
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

template <typename T>
std::int64_t WinogradGradient<T>::scratch(int threads) const {
  return kTilePlaces *
             ((kept_ ? panels() * blocks() : 1) * sums_place() + blocks() * x_place() + panels() * dy_place()) +
         threads * own_ + x_.scratch() + dy_.scratch();
}

template <typename T>
void WinogradGradient<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  const std::int64_t at_once = kept_ ? panels() * blocks() : 1, size = kTilePlaces * sums_place();
  T* const sums = call.scratch;
  const Transformed tiles{sums + at_once * size, sums + at_once * size + blocks() * kTilePlaces * x_place()};
  T* const own = tiles.dy + panels() * kTilePlaces * dy_place();
  T* const copies = own + threads * own_;
  const T* const x = x_.prepare(call.team, call.x, call.images, copies);
  const T* const dy = dy_.prepare(call.team, call.dy, call.images, copies + x_.scratch());
  const std::int64_t all = call.images * grid_.tiles(), pieces = panels() * blocks();
  const auto piece = [&](std::int64_t number) { return Piece{number / blocks(), number % blocks()}; };
  for (Chunk chunk; chunk.first < all; chunk.first += chunk_) {
    chunk.count = std::min(chunk_, all - chunk.first);
    transform(call, chunk, x, dy, tiles);
    const bool last = call.first + call.images >= n_ && chunk.first + chunk.count >= all;
    for (std::int64_t first = 0; first < pieces; first += at_once) {
      const std::int64_t each = chunk.count * block_ * panel_;
      share(call.team, stretches_of(at_once * kTilePlaces, each, 1, kStretchProducts),
            [&](std::int64_t begin, std::int64_t count, int) {
              for (std::int64_t i = begin; i < begin + count; ++i) {
                const std::int64_t p = i / kTilePlaces;
                sum_up(call, chunk, piece(first + p), i % kTilePlaces, tiles, sums + p * size);
              }
            });
      if (!last) continue;
      const std::int64_t parts = (block_ + kFinished - 1) / kFinished;  // of a piece
      share(call.team, stretches_of(at_once * parts, kTilePlaces * kFinished * panel_),
            [&](std::int64_t begin, std::int64_t count, int thread) {
              for (std::int64_t i = begin; i < begin + count; ++i) {
                const std::int64_t p = i / parts;
                finish(call, piece(first + p), i % parts * kFinished, sums + p * size, own + thread * own_);
              }
            });
    }
  }
}

template <typename T>
void WinogradGradient<T>::transform(const Call& call, const Chunk& chunk, const T* x, const T* dy,
                                    const Transformed& to) const {
  const Source::Strides &from_x = x_.strides(), &from_dy = dy_.strides();
  share(call.team, stretches_of(chunk.count, kTilePlaces * (inputs_ + outputs_)),
        [&](std::int64_t first, std::int64_t count, int) {
          grid_.for_each_row(
              chunk.first + first, count,
              [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
                const auto pixel = [&](const T* all, const Source::Strides& strides) {
                  return all + image * strides.image + 2 * (row * strides.row + column * strides.pixel);
                };
                const std::int64_t tile = number - chunk.first;
                for (std::int64_t c = 0; c < inputs_; c += block_) {
                  transform_source(
                      {tiles, std::min(block_, inputs_ - c), from_x.row, from_x.pixel, x_place(), block_ld_},
                      pixel(x, from_x) + c, to.x + c / block_ * kTilePlaces * x_place() + tile * block_ld_);
                }
                for (std::int64_t o = 0; o < outputs_; o += panel_) {
                  transform_gradient(
                      {tiles, std::min(panel_, outputs_ - o), from_dy.row, from_dy.pixel, dy_place(), panel_ld_},
                      pixel(dy, from_dy) + o, to.dy + o / panel_ * kTilePlaces * dy_place() + tile * panel_ld_);
                }
              });
        });
}

template <typename T>
void WinogradGradient<T>::sum_up(const Call& call, const Chunk& chunk, const Piece& piece, std::int64_t place,
                                 const Transformed& tiles, T* sums) const {
  const bool narrow = (piece.panel + 1) * panel_ > outputs_, shorter = (piece.block + 1) * block_ > inputs_;
  const auto micro = std::find_if(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.tiles == chunk.count; });
  constexpr unsigned long long kOne = 1, kNowhere = 0;
  micro->sum[narrow][shorter][call.first > 0 || chunk.first > 0](
      tiles.dy + (piece.panel * kTilePlaces + place) * dy_place(),
      tiles.x + (piece.block * kTilePlaces + place) * x_place(), sums + place * sums_place(), &kOne, &kNowhere,
      &kNowhere);
}

// Some inputs of a piece: sums [16, inputs, panel] to [inputs, 9, panel] to [panel, inputs, 9].
template <typename T>
void WinogradGradient<T>::finish(const Call& call, const Piece& piece, std::int64_t input, const T* sums,
                                 T* own) const {
  const std::int64_t first = piece.block * block_ + input;
  const std::int64_t inputs = std::min({kFinished, block_ - input, inputs_ - first});
  if (inputs <= 0) return;
  const std::int64_t output = piece.panel * panel_, width = std::min(panel_, outputs_ - output);
  const std::int64_t rows = inputs * kTaps, ld = inputs_ * kTaps;
  finish_kernels({inputs, width, panel_ld_, kTaps * panel_ld_, sums_place()}, sums + input * panel_ld_, own);
  T* const to = call.dweight + output * ld + first * kTaps;
  if (!add_) return transpose(own, panel_ld_, rows, width, to, ld);
  add_transposed(own, panel_ld_, rows, width, to, ld, own + own_ / 2);
}

template class WinogradGradient<float>;
template class WinogradGradient<double>;

}  // namespace hfta::fusion::cpu
