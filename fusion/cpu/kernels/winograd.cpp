#include "fusion/cpu/kernels/winograd.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/rows.hpp"

namespace hfta::fusion::cpu {
namespace {

// Outputs and inputs of a product's block: the kernels' 64 x 64 elements at 16 places take 256 KiB in float.
constexpr std::int64_t kPanel = 64, kBlock = 64;
constexpr std::int64_t kRows = 32;  // tiles of a product: a team has two or more of a chunk
// Elements of source tiles that are transformed at a time, 256 KiB of float; with many channels at least kLeastTiles,
// that the kernels pay for being read.
constexpr std::int64_t kChunk = 65536, kLeastTiles = 64;

}  // namespace

bool winograd_pays(const ConvShape& s, bool backward) {
  constexpr Pair kOnes = {1, 1};
  const bool can = s.kernel == Pair{3, 3} && s.stride == kOnes && s.dilation == kOnes && s.groups == 1 &&
                   s.padding[0] <= 2 && s.padding[1] <= 2;
  constexpr std::int64_t kChannels = 32, kTiles = 16;
  const TileGrid grid{backward ? s.in : s.out};
  const std::int64_t tiles = grid.tiles(), direct = s.taps() * grid.pixels[0] * grid.pixels[1];
  return can && s.c >= kChannels && s.o >= kChannels && s.n * tiles >= kTiles && 5 * direct >= 8 * kTilePlaces * tiles;
}

TapGeometry tile_geometry(const ConvShape& s, bool backward) {
  TapGeometry g = backward ? backward_taps(s) : forward_taps(s);
  for (std::size_t d = 0; d < 2; ++d) g.bordered[d] = (g.result[d] + 1) / 2 * 2 + 2;
  return g;
}

std::int64_t tile_block(std::int64_t channels) { return channels <= kBlock * 3 / 2 ? channels : kBlock; }

template <typename T>
WinogradProduct<T>::WinogradProduct(const ConvShape& s, bool backward, bool add)
    : g_(tile_geometry(s, backward)),
      grid_{g_.result},
      n_(s.n),
      inputs_(backward ? s.o : s.c),
      outputs_(backward ? s.c : s.o),
      at_once_(images_at_once(s)),
      panel_(std::min(kPanel, in_tile_lanes(outputs_))),
      block_(tile_block(inputs_)),
      block_ld_(in_tile_lanes(block_)),
      backward_(backward),
      add_(add),
      source_(g_, at_once_, inputs_, inputs_) {
  for (const Tap& tap : g_.phases.front().taps) elements_.push_back(tap.element);
  const std::int64_t all = std::min(at_once_, n_) * grid_.tiles(), tile = kTilePlaces * inputs_;
  rows_ = std::min(kRows, all);
  chunk_ = std::min(std::max(kChunk / tile, kLeastTiles) / rows_ * rows_, all);
  kept_ = n_ * grid_.tiles() > chunk_;
  own_ = std::max(kTilePlaces * result_place(), turning_scratch(s.taps(), panel_) + s.taps() * kTurnedAtOnce * panel_);
  make_kernels();
}

template <typename T>
void WinogradProduct<T>::make_kernels() {
  const std::int64_t whole = inputs_ / block_, rest = inputs_ % block_;
  for (std::int64_t b = 0; b < whole; ++b) {
    kernel_blocks_.push_back(static_cast<unsigned long long>(b * block_ * panel_) * sizeof(T));
    source_blocks_.push_back(static_cast<unsigned long long>(b * kTilePlaces * source_place()) * sizeof(T));
  }
  // Chunks end with fewer tiles where a call does, and the last call may have fewer images.
  const std::int64_t calls[] = {std::min(at_once_, n_), n_ % at_once_};
  std::vector<std::int64_t> rows = {rows_};
  for (const std::int64_t images : calls) {
    const std::int64_t in_last_chunk = images * grid_.tiles() % chunk_;
    rows.push_back(in_last_chunk % rows_);
    rows.push_back(chunk_ % rows_);
  }
  for (const std::int64_t count : rows) {
    const bool known = std::any_of(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.rows == count; });
    if (count == 0 || known) continue;
    Micro micro{count, {}, {}};
    for (const bool narrow : {false, true}) {
      const std::int64_t columns = narrow ? in_tile_lanes(outputs_ % panel_) : panel_;
      if (columns == 0) continue;
      BatchReduce product{.rows = count,
                          .columns = columns,
                          .depth = block_,
                          .lda = panel_,
                          .ldb = block_ld_,
                          .ldc = panel_,
                          .add = false};
      micro.whole[narrow] = batch_reduce_kernel<T>(product);
      product.depth = rest;
      product.add = true;
      if (rest > 0) micro.rest[narrow] = batch_reduce_kernel<T>(product);
    }
    micro_.push_back(micro);
  }
}

template <typename T>
std::int64_t WinogradProduct<T>::scratch(int threads) const {
  return kTilePlaces * ((kept_ ? panels() : 1) * kernels_place() + blocks() * source_place()) +
         threads * in_tile_lanes(own_) + source_.scratch();
}

template <typename T>
void WinogradProduct<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  const std::int64_t at_once = kept_ ? panels() : 1, own_size = in_tile_lanes(own_);
  T* const kernels = call.scratch;
  T* const transformed = kernels + at_once * kTilePlaces * kernels_place();
  T* const own = transformed + blocks() * kTilePlaces * source_place();
  const T* const from = call.source + call.first * g_.source[0] * g_.source[1] * inputs_;
  const T* const source = source_.prepare(call.team, from, call.images, own + threads * own_size);
  const std::int64_t tiles = call.images * grid_.tiles();
  for (Chunk chunk; chunk.first < tiles; chunk.first += chunk_) {
    chunk.count = std::min(chunk_, tiles - chunk.first);
    transform_chunk(call, chunk, source, transformed);
    for (std::int64_t first = 0; first < panels(); first += at_once) {
      if (call.first == 0 && chunk.first == 0) {
        for (std::int64_t p = 0; p < at_once; ++p)
          transform_panel(call, first + p, kernels + p * kTilePlaces * kernels_place(), own);
      }
      const std::int64_t products = (chunk.count + rows_ - 1) / rows_;
      const std::int64_t each = kTilePlaces * rows_ * inputs_ * panel_;
      share(call.team, stretches_of(at_once * products, each, 1, kStretchProducts),
            [&](std::int64_t begin, std::int64_t count, int thread) {
              for (std::int64_t i = begin; i < begin + count; ++i) {
                const std::int64_t p = i / products, row = i % products * rows_;
                multiply(call, {chunk.first + row, std::min(rows_, chunk.count - row)}, first + p,
                         kernels + p * kTilePlaces * kernels_place(), transformed + row * block_ld_,
                         own + thread * own_size);
              }
            });
    }
  }
}

template <typename T>
void WinogradProduct<T>::transform_panel(const Call& call, std::int64_t panel, T* to, T* own) const {
  const std::int64_t taps = static_cast<std::int64_t>(elements_.size()), first_output = panel * panel_;
  const std::int64_t size = turning_scratch(taps, panel_);
  Turning turning{.columns = std::min(panel_, outputs_ - first_output),
                  .ld = panel_,
                  .stride = (backward_ ? outputs_ : inputs_) * taps,
                  .elements = taps,
                  .tap_stride = kTurnedAtOnce * panel_};
  const T* const from = call.weight + first_output * (backward_ ? taps : inputs_ * taps);
  const std::int64_t step = backward_ ? turning.stride : taps;  // from one input to the next
  share(call.team, stretches_of(inputs_, taps * panel_, kTurnedAtOnce),
        [&](std::int64_t first, std::int64_t count, int thread) {
          T* const scratch = own + thread * in_tile_lanes(own_);
          T* const turned = scratch + size;
          for (std::int64_t i = first; i < first + count; i += kTurnedAtOnce) {
            Turning some = turning;
            some.k = std::min(kTurnedAtOnce, first + count - i);
            turn_weights(some, !backward_, elements_.data(), taps, from + i * step, turned, scratch);
            transform_kernels({some.k, turning.columns, panel_, turning.tap_stride, kernels_place()}, turned,
                              to + i * panel_);
          }
        });
}

template <typename T>
void WinogradProduct<T>::transform_chunk(const Call& call, const Chunk& chunk, const T* source, T* to) const {
  const Source::Strides& strides = source_.strides();
  share(call.team, stretches_of(chunk.count, kTilePlaces * inputs_), [&](std::int64_t first, std::int64_t count, int) {
    grid_.for_each_row(
        chunk.first + first, count,
        [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
          const T* const from = source + image * strides.image + 2 * (row * strides.row + column * strides.pixel);
          for (std::int64_t c = 0; c < inputs_; c += block_) {
            transform_source(
                {tiles, std::min(block_, inputs_ - c), strides.row, strides.pixel, source_place(), block_ld_}, from + c,
                to + c / block_ * kTilePlaces * source_place() + (number - chunk.first) * block_ld_);
          }
        });
  });
}

template <typename T>
void WinogradProduct<T>::multiply(const Call& call, const Chunk& chunk, std::int64_t panel, const T* kernels,
                                  const T* source, T* own) const {
  const std::int64_t first_output = panel * panel_, width = std::min(panel_, outputs_ - first_output);
  const bool narrow = width < panel_ && outputs_ > panel_;
  const auto micro = std::find_if(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.rows == chunk.count; });
  const unsigned long long whole = kernel_blocks_.size();
  for (std::int64_t place = 0; place < kTilePlaces; ++place) {
    const T* const k = kernels + place * kernels_place();
    const T* const s = source + place * source_place();
    T* const to = own + place * result_place();
    micro->whole[narrow](k, s, to, &whole, kernel_blocks_.data(), source_blocks_.data());
    if (micro->rest[narrow] != nullptr) {
      constexpr unsigned long long kOne = 1, kNowhere = 0;
      const auto done = static_cast<std::int64_t>(whole);
      micro->rest[narrow](k + done * block_ * panel_, s + done * kTilePlaces * source_place(), to, &kOne, &kNowhere,
                          &kNowhere);
    }
  }
  grid_.for_each_row(
      chunk.first, chunk.count,
      [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
        T* const to = call.result +
                      (((call.first + image) * g_.result[0] + 2 * row) * g_.result[1] + 2 * column) * outputs_ +
                      first_output;
        const std::int64_t ld = g_.result[1] * outputs_;
        const Pair there = {std::min<std::int64_t>(g_.result[0] - 2 * row, 2),
                            std::min(g_.result[1] - 2 * column, 2 * tiles)};
        transform_result({tiles, width, ld, outputs_, result_place(), panel_}, {there[0], there[1], add_},
                         own + (number - chunk.first) * panel_, to);
        if (call.bias == nullptr && !call.relu) return;
        const T* const bias = call.bias == nullptr ? nullptr : call.bias + first_output;
        for (std::int64_t h = 0; h < there[0]; ++h) add_bias(to + h * ld, outputs_, there[1], width, bias, call.relu);
      });
}

template class WinogradProduct<float>;
template class WinogradProduct<double>;

}  // namespace hfta::fusion::cpu
