#include "fusion/cpu/kernels/conv_layout.hpp"

#include <algorithm>
#include <cstring>

#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kTurned = 16;  // channels that are turned at a time

template <typename T>
inline __attribute__((always_inline)) void gather(const T* __restrict from, std::int64_t step, std::int64_t n,
                                                  T* __restrict to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

void gather_row(const float* from, std::int64_t step, std::int64_t n, float* to) {
  simd::multiversion([&] { gather(from, step, n, to); });
}
void gather_row(const double* from, std::int64_t step, std::int64_t n, double* to) {
  simd::multiversion([&] { gather(from, step, n, to); });
}

template <typename T>
void turn(const Turning& s, bool outputs_first, const std::int64_t* elements, std::int64_t taps, const T* from, T* to,
          T* scratch) {
  if (!outputs_first) {
    for (std::int64_t i = 0; i < s.k; ++i) {
      for (std::int64_t t = 0; t < taps; ++t) {
        T* const row = to + t * s.tap_stride + i * s.ld;
        if (s.elements == 1) {
          std::copy_n(from + i * s.stride, s.columns, row);
        } else {
          gather_row(from + i * s.stride + elements[t], s.elements, s.columns, row);
        }
      }
    }
    return;
  }
  for (std::int64_t i0 = 0; i0 < s.k; i0 += kTurned) {
    const std::int64_t count = std::min(kTurned, s.k - i0);
    transpose(from + i0 * s.elements, s.stride, s.columns, count * s.elements, scratch, s.columns);
    for (std::int64_t t = 0; t < taps; ++t) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::copy_n(scratch + (i * s.elements + elements[t]) * s.columns, s.columns,
                    to + t * s.tap_stride + (i0 + i) * s.ld);
      }
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void gather_patches(const TapGeometry& g, const std::vector<Stretch>& stretches,
                                                          std::int64_t images, std::int64_t channels, const T* from,
                                                          T* to) {
  const Stretch* const first = stretches.data();
  const auto count = static_cast<std::int64_t>(stretches.size());
  const std::int64_t step = g.source_step[1] * channels;
  const Phase& phase = g.phases.front();
  const std::int64_t image = g.bordered[0] * g.bordered[1] * channels;
  for (std::int64_t i = 0; i < images; ++i) {
    for (std::int64_t h = 0; h < phase.count[0]; ++h) {
      const T* pixel = from + i * image + h * g.source_step[0] * g.bordered[1] * channels;
      // What one copy writes too much the next overwrites.
      for (std::int64_t w = 0; w < phase.count[1]; ++w, pixel += step) {
        for (std::int64_t s = 0; s < count; ++s) {
          const Stretch stretch = first[s];
          const T* const source = pixel + stretch.at;
          std::memcpy(to, source, kSlack * sizeof(T));
          for (std::int64_t c = kSlack; c < stretch.count; c += kSlack) {
            std::memcpy(to + c, source + c, kSlack * sizeof(T));
          }
          to += stretch.count;
        }
      }
    }
  }
}

}  // namespace

template <typename T>
void copy_bordered(const TapGeometry& g, std::int64_t channels, std::int64_t first, std::int64_t block, const T* from,
                   T* to) {
  const std::int64_t rows = g.source[0], columns = g.source[1];
  const std::int64_t width = g.bordered[1] * block, used = std::min(block, channels - first);
  std::fill_n(to, g.before[0] * width, T{0});
  for (std::int64_t h = 0; h < rows; ++h) {
    T* const row = to + (h + g.before[0]) * width;
    T* const inner = row + g.before[1] * block;
    const T* const source = from + h * g.source[1] * channels + first;
    std::fill(row, inner, T{0});
    if (block == channels) {
      std::copy_n(source, columns * channels, inner);
    } else {
      for (std::int64_t w = 0; w < columns; ++w) std::copy_n(source + w * channels, used, inner + w * block);
    }
    std::fill(inner + columns * block, row + width, T{0});
  }
  std::fill_n(to + (g.before[0] + rows) * width, (g.bordered[0] - g.before[0] - rows) * width, T{0});
}

std::vector<Stretch> patch_stretches(const TapGeometry& g, std::int64_t channels) {
  std::vector<Stretch> stretches;
  const std::vector<Tap>& taps = g.phases.front().taps;
  for (std::size_t t = 0; t < taps.size(); ++t) {
    const bool follows = t > 0 && taps[t].at[0] == taps[t - 1].at[0] && taps[t].at[1] == taps[t - 1].at[1] + 1;
    if (!follows) stretches.push_back({(taps[t].at[0] * g.bordered[1] + taps[t].at[1]) * channels, 0});
    stretches.back().count += channels;
  }
  return stretches;
}

void copy_patches(const TapGeometry& g, const std::vector<Stretch>& stretches, std::int64_t images,
                  std::int64_t channels, const float* from, float* to) {
  simd::multiversion([&] { gather_patches(g, stretches, images, channels, from, to); });
}
void copy_patches(const TapGeometry& g, const std::vector<Stretch>& stretches, std::int64_t images,
                  std::int64_t channels, const double* from, double* to) {
  simd::multiversion([&] { gather_patches(g, stretches, images, channels, from, to); });
}

std::int64_t turning_scratch(std::int64_t elements, std::int64_t columns) { return kTurned * elements * columns; }

void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const float* from, float* to, float* scratch) {
  turn(turning, outputs_first, elements, taps, from, to, scratch);
}
void turn_weights(const Turning& turning, bool outputs_first, const std::int64_t* elements, std::int64_t taps,
                  const double* from, double* to, double* scratch) {
  turn(turning, outputs_first, elements, taps, from, to, scratch);
}

template void copy_bordered(const TapGeometry&, std::int64_t, std::int64_t, std::int64_t, const float*, float*);
template void copy_bordered(const TapGeometry&, std::int64_t, std::int64_t, std::int64_t, const double*, double*);

}  // namespace hfta::fusion::cpu
