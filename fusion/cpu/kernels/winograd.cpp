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

std::int64_t tile_block(std::int64_t channels) { return channels <= kBlock * 3 / 2 ? channels : kBlock; }

template <typename T>
WinogradProduct<T>::WinogradProduct(const ConvShape& s, bool backward, bool add)
    : conv_(s, backward),
      inputs_(backward ? s.o : s.c),
      outputs_(backward ? s.c : s.o),
      panel_(std::min(kPanel, in_tile_lanes(outputs_))),
      block_(tile_block(inputs_)),
      block_ld_(in_tile_lanes(block_)),
      backward_(backward),
      add_(add),
      source_(conv_.geometry, images_at_once(s), inputs_, inputs_) {
  for (const Phase& phase : conv_.phases) {
    for (const TilePart& part : phase.parts)
      elements_.insert(elements_.end(), part.elements.begin(), part.elements.end());
  }
  const std::int64_t all = std::min(images_at_once(s), s.n) * conv_.grid.tiles();
  const std::int64_t tile = conv_.places() * conv_.parts() * inputs_;
  rows_ = std::min(kRows, all);
  chunk_ = std::min(std::max(kChunk / tile, kLeastTiles) / rows_ * rows_, all);
  kept_ = s.n * conv_.grid.tiles() > chunk_ || phases() > 1;
  own_ =
      std::max(conv_.places() * result_place(), turning_scratch(s.taps(), panel_) + s.taps() * kTurnedAtOnce * panel_);
  find_blocks();
  make_kernels(s);
}

template <typename T>
void WinogradProduct<T>::find_blocks() {
  const std::int64_t whole = inputs_ / block_, rest = inputs_ % block_;
  for (std::int64_t part = 0; part < conv_.parts(); ++part) {
    for (std::int64_t b = 0; b < whole + (rest > 0 ? 1 : 0); ++b) {
      Blocks& to = b < whole ? whole_ : rest_;
      const std::int64_t kernels = (part * inputs_ + b * block_) * panel_;
      const std::int64_t source = (part * blocks() + b) * conv_.places() * source_place();
      to.kernels.push_back(static_cast<unsigned long long>(kernels) * sizeof(T));
      to.source.push_back(static_cast<unsigned long long>(source) * sizeof(T));
    }
  }
}

template <typename T>
void WinogradProduct<T>::make_kernels(const ConvShape& s) {
  // Chunks end with fewer tiles where a call does, and the last call may have fewer images.
  const std::int64_t at_once = images_at_once(s), calls[] = {std::min(at_once, s.n), s.n % at_once};
  std::vector<std::int64_t> rows = {rows_};
  for (const std::int64_t images : calls) {
    const std::int64_t in_last_chunk = images * conv_.grid.tiles() % chunk_;
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
      product.depth = inputs_ % block_;
      product.add = true;
      if (product.depth > 0) micro.rest[narrow] = batch_reduce_kernel<T>(product);
    }
    micro_.push_back(micro);
  }
}

template <typename T>
std::int64_t WinogradProduct<T>::scratch(int threads) const {
  return source_size() + threads * in_tile_lanes(own_) + source_.scratch();
}

template <typename T>
void WinogradProduct<T>::turn(const Call& call) const {
  if (!kept_) return;
  T* const own = call.scratch + source_size();
  for (std::int64_t p = 0; p < panels(); ++p) transform_panel(call, p, call.turned + p * kernels_size(), own);
}

template <typename T>
void WinogradProduct<T>::operator()(const Call& call) const {
  const int threads = call.team == nullptr ? 1 : call.team->threads();
  const std::int64_t at_once = kept_ ? panels() : 1, own_size = in_tile_lanes(own_);
  T* const transformed = call.scratch;
  T* const own = transformed + source_size();
  const T* const from = call.source + call.first * conv_.geometry.source[0] * conv_.geometry.source[1] * inputs_;
  const T* const source = source_.prepare(call.team, from, call.images, own + threads * own_size);
  const std::int64_t tiles = call.images * conv_.grid.tiles();
  for (std::int64_t f = 0; f < phases(); ++f) {
    const Phase& phase = conv_.phases[static_cast<std::size_t>(f)];
    for (Chunk chunk; chunk.first < tiles; chunk.first += chunk_) {
      chunk.count = std::min(chunk_, tiles - chunk.first);
      transform_chunk(call, phase, chunk, source, transformed);
      for (std::int64_t first = 0; first < panels(); first += at_once) {
        if (!kept_) transform_panel(call, first, call.turned, own);
        const T* const those = call.turned + f * panels() * kernels_size();
        const std::int64_t products = (chunk.count + rows_ - 1) / rows_;
        const std::int64_t each = conv_.places() * rows_ * conv_.parts() * inputs_ * panel_;
        share(call.team, stretches_of(at_once * products, each, 1, kStretchProducts),
              [&](std::int64_t begin, std::int64_t count, int thread) {
                for (std::int64_t i = begin; i < begin + count; ++i) {
                  const std::int64_t p = i / products, row = i % products * rows_;
                  const Chunk some{chunk.first + row, std::min(rows_, chunk.count - row)};
                  T* const results = own + thread * own_size;
                  multiply(some, first + p, those + p * kernels_size(), transformed + row * block_ld_, results);
                  write(call, phase, some, first + p, results);
                }
              });
      }
    }
  }
}

// Transforms a panel of all phases, whose panels lie panels() panels apart.
template <typename T>
void WinogradProduct<T>::transform_panel(const Call& call, std::int64_t panel, T* to, T* own) const {
  const std::int64_t r = conv_.r, in_part = r * r, first_output = panel * panel_;
  const auto taps = static_cast<std::int64_t>(elements_.size());
  const std::int64_t size = turning_scratch(taps, panel_);
  const Turning all{.columns = std::min(panel_, outputs_ - first_output),
                    .ld = panel_,
                    .stride = (backward_ ? outputs_ : inputs_) * taps,
                    .elements = taps,
                    .tap_stride = kTurnedAtOnce * panel_};
  const TileKernels kernels{.r = r,
                            .columns = all.columns,
                            .tap_row = panel_,
                            .beside = all.tap_stride,
                            .below = r * all.tap_stride,
                            .place_row = panel_,
                            .place = kernels_place()};
  const T* const from = call.weight + first_output * (backward_ ? taps : inputs_ * taps);
  const std::int64_t step = backward_ ? all.stride : taps;  // elements from one input to the next
  share(call.team, stretches_of(inputs_, taps * panel_, kTurnedAtOnce),
        [&](std::int64_t first, std::int64_t count, int thread) {
          T* const scratch = own + thread * in_tile_lanes(own_);
          T* const turned = scratch + size;
          for (std::int64_t i = first; i < first + count; i += kTurnedAtOnce) {
            Turning turning = all;
            turning.k = std::min(kTurnedAtOnce, first + count - i);
            turn_weights(turning, !backward_, elements_.data(), taps, from + i * step, turned, scratch);
            for (std::int64_t part = 0; part < taps / in_part; ++part) {
              T* const phase = to + part / conv_.parts() * panels() * kernels_size();
              TileKernels some = kernels;
              some.rows = turning.k;
              transform_kernels(some, turned + part * in_part * turning.tap_stride,
                                phase + (part % conv_.parts() * inputs_ + i) * panel_);
            }
          }
        });
}

template <typename T>
void WinogradProduct<T>::transform_chunk(const Call& call, const Phase& phase, const Chunk& chunk, const T* source,
                                         T* to) const {
  const Source::Strides& strides = source_.strides();
  const std::int64_t pixel = strides.pixel * conv_.geometry.source_step[1], block = conv_.places() * source_place();
  share(call.team, stretches_of(chunk.count, conv_.places() * conv_.parts() * inputs_),
        [&](std::int64_t first, std::int64_t count, int) {
          conv_.grid.for_each_row(
              chunk.first + first, count,
              [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
                const T* const from = source + image * strides.image + 2 * (row * strides.row + column * pixel);
                T* at = to + (number - chunk.first) * block_ld_;
                for (const TilePart& part : phase.parts) {
                  for (std::int64_t c = 0; c < inputs_; c += block_, at += block) {
                    transform_source({.r = conv_.r,
                                      .tiles = tiles,
                                      .channels = std::min(block_, inputs_ - c),
                                      .row = strides.row,
                                      .pixel = pixel,
                                      .place = source_place(),
                                      .tile = block_ld_},
                                     from + source_.offset(part.first) + c, at);
                  }
                }
              });
        });
}

template <typename T>
void WinogradProduct<T>::multiply(const Chunk& chunk, std::int64_t panel, const T* kernels, const T* source,
                                  T* own) const {
  const bool narrow = (panel + 1) * panel_ > outputs_ && outputs_ > panel_;
  const auto micro = std::find_if(micro_.begin(), micro_.end(), [&](const Micro& m) { return m.rows == chunk.count; });
  const unsigned long long whole = whole_.kernels.size(), rest = rest_.kernels.size();
  for (std::int64_t place = 0; place < conv_.places(); ++place) {
    const T* const k = kernels + place * kernels_place();
    const T* const s = source + place * source_place();
    T* const to = own + place * result_place();
    micro->whole[narrow](k, s, to, &whole, whole_.kernels.data(), whole_.source.data());
    if (rest > 0) micro->rest[narrow](k, s, to, &rest, rest_.kernels.data(), rest_.source.data());
  }
}

template <typename T>
void WinogradProduct<T>::write(const Call& call, const Phase& phase, const Chunk& chunk, std::int64_t panel,
                               const T* own) const {
  const TapGeometry& g = conv_.geometry;
  const std::int64_t first_output = panel * panel_, width = std::min(panel_, outputs_ - first_output);
  const std::int64_t pixel = g.result_step[1] * outputs_, ld = g.result_step[0] * g.result[1] * outputs_;
  const T* const bias = call.bias == nullptr ? nullptr : call.bias + first_output;
  conv_.grid.for_each_row(
      chunk.first, chunk.count,
      [&](std::int64_t image, std::int64_t row, std::int64_t column, std::int64_t tiles, std::int64_t number) {
        const Pair there = {std::min<std::int64_t>(phase.count[0] - 2 * row, 2),
                            std::min(phase.count[1] - 2 * column, 2 * tiles)};
        if (there[0] <= 0 || there[1] <= 0) return;
        T* const pixels = call.result + (call.first + image) * g.result[0] * g.result[1] * outputs_ +
                          (phase.begin[0] * g.result[1] + phase.begin[1]) * outputs_ + first_output;
        T* const to = pixels + 2 * (row * ld + column * pixel);
        transform_result({.r = conv_.r,
                          .tiles = tiles,
                          .channels = width,
                          .row = ld,
                          .pixel = pixel,
                          .place = result_place(),
                          .tile = panel_},
                         {there[0], there[1], add_}, own + (number - chunk.first) * panel_, to);
        if (bias == nullptr && !call.relu) return;
        for (std::int64_t h = 0; h < there[0]; ++h) add_bias(to + h * ld, pixel, there[1], width, bias, call.relu);
      });
}

template class WinogradProduct<float>;
template class WinogradProduct<double>;

}  // namespace hfta::fusion::cpu
