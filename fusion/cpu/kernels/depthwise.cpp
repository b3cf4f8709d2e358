#include "fusion/cpu/kernels/depthwise.hpp"

#include <algorithm>

#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/simd/multiversion.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kChannels = 64;

// A row of pixels: each a sum over taps. Offsets and steps in elements.
template <typename T>
struct Row {
  const T* source;
  const T* weights;
  T* result;
  const std::int64_t* sources;
  const std::int64_t* rows;  // rows of weights
  std::int64_t taps, pixels, channels, source_step, result_step;
  bool add;
};

template <typename T>
inline __attribute__((always_inline)) void add_tap(const T* source, std::int64_t source_step,
                                                   const T* __restrict weights, std::int64_t pixels,
                                                   std::int64_t channels, T* result, std::int64_t result_step) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const T* __restrict v = source + p * source_step;
    T* __restrict y = result + p * result_step;
    for (std::int64_t c = 0; c < channels; ++c) y[c] += v[c] * weights[c];
  }
}

// Tap by tap: the row stays in the first cache.
template <typename T>
inline __attribute__((always_inline)) void sum_row(const Row<T>& r) {
  if (!r.add) {
    for (std::int64_t p = 0; p < r.pixels; ++p) {
      T* __restrict y = r.result + p * r.result_step;
      for (std::int64_t c = 0; c < r.channels; ++c) y[c] = T{0};
    }
  }
  for (std::int64_t t = 0; t < r.taps; ++t) {
    add_tap(r.source + r.sources[t], r.source_step, r.weights + r.rows[t], r.pixels, r.channels, r.result,
            r.result_step);
  }
}

void row_of_sums(const Row<float>& row) {
  simd::multiversion([&] { sum_row(row); });
}
void row_of_sums(const Row<double>& row) {
  simd::multiversion([&] { sum_row(row); });
}

// sums [channels] += x dy over a row of pixels, which lie `step` and `dy_step` elements apart.
template <typename T>
inline __attribute__((always_inline)) void sum_products(const T* x, std::int64_t step, const T* dy,
                                                        std::int64_t dy_step, std::int64_t pixels,
                                                        std::int64_t channels, T* sums) {
  for (std::int64_t c0 = 0; c0 < channels; c0 += kChannels) {
    const std::int64_t width = std::min(kChannels, channels - c0);
    T sum[kChannels] = {};
    for (std::int64_t p = 0; p < pixels; ++p) {
      const T* __restrict v = x + p * step + c0;
      const T* __restrict d = dy + p * dy_step + c0;
      for (std::int64_t c = 0; c < width; ++c) sum[c] += v[c] * d[c];
    }
    for (std::int64_t c = 0; c < width; ++c) sums[c0 + c] += sum[c];
  }
}

void row_of_products(const float* x, std::int64_t step, const float* dy, std::int64_t dy_step, std::int64_t pixels,
                     std::int64_t channels, float* sums) {
  simd::multiversion([&] { sum_products(x, step, dy, dy_step, pixels, channels, sums); });
}
void row_of_products(const double* x, std::int64_t step, const double* dy, std::int64_t dy_step, std::int64_t pixels,
                     std::int64_t channels, double* sums) {
  simd::multiversion([&] { sum_products(x, step, dy, dy_step, pixels, channels, sums); });
}

}  // namespace

bool is_depthwise(const ConvShape& s) { return s.groups > 1 && s.groups == s.c && s.groups == s.o; }

template <typename T>
DepthwiseProduct<T>::DepthwiseProduct(const ConvShape& s, bool backward, bool add)
    : g_(backward ? backward_taps(s) : forward_taps(s)),
      channels_(s.c),
      elements_(s.taps()),
      add_(add),
      source_(g_, images_at_once(s), s.c, s.c) {
  for (const Phase& phase : g_.phases) {
    sources_.emplace_back();
    weights_.emplace_back();
    for (const Tap& tap : phase.taps) {
      sources_.back().push_back(source_.offset(tap));
      weights_.back().push_back(tap.element * channels_);
    }
  }
}

template <typename T>
void DepthwiseProduct<T>::turn(const Call& call) const {
  transpose(call.weight, elements_, channels_, elements_, call.turned, channels_);
}

// A team shares images.
template <typename T>
void DepthwiseProduct<T>::operator()(const Call& call) const {
  const T* const from = call.source + call.first * g_.source[0] * g_.source[1] * channels_;
  const T* const source = source_.prepare(call.team, from, call.images, call.scratch);
  const std::int64_t products = g_.result[0] * g_.result[1] * elements_ * channels_;
  share(call.team, stretches_of(call.images, products), [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t i = first; i < first + count; ++i) apply(call, i, source);
  });
}

template <typename T>
void DepthwiseProduct<T>::apply(const Call& call, std::int64_t i, const T* source) const {
  const Source::Strides& strides = source_.strides();
  T* const image = call.result + (call.first + i) * g_.result[0] * g_.result[1] * channels_;
  for (std::size_t p = 0; p < g_.phases.size(); ++p) {
    const Phase& phase = g_.phases[p];
    for (std::int64_t h = 0; h < phase.count[0]; ++h) {
      T* const row = image + ((phase.begin[0] + h * g_.result_step[0]) * g_.result[1] + phase.begin[1]) * channels_;
      row_of_sums(Row<T>{source + i * strides.image + h * strides.row, call.turned, row, sources_[p].data(),
                         weights_[p].data(), static_cast<std::int64_t>(phase.taps.size()), phase.count[1], channels_,
                         strides.pixel * g_.source_step[1], channels_ * g_.result_step[1], add_});
      if (call.bias != nullptr || call.relu) {
        add_bias(row, channels_ * g_.result_step[1], phase.count[1], channels_, call.bias, call.relu);
      }
    }
  }
}

template <typename T>
DepthwiseGradient<T>::DepthwiseGradient(const ConvShape& s, bool add)
    : g_(forward_taps(s)), channels_(s.c), elements_(s.taps()), add_(add), source_(g_, images_at_once(s), s.c, s.c) {}

template <typename T>
void DepthwiseGradient<T>::operator()(const Call& call) const {
  T* const sums = call.sums;
  if (call.begins) std::fill_n(sums, sums_size(), T{0});
  const T* const x = source_.prepare(call.team, call.x, call.images, call.scratch + sums_size());
  const std::int64_t pixels = call.images * g_.result[0] * g_.result[1];
  const Source::Strides& strides = source_.strides();
  // A team shares channels.
  share(call.team, stretches_of(channels_, pixels * elements_, kChannels),
        [&](std::int64_t c, std::int64_t count, int) {
          const T* dy = call.dy + c;
          for (std::int64_t i = 0; i < call.images; ++i) {
            for (std::int64_t h = 0; h < g_.result[0]; ++h, dy += g_.result[1] * channels_) {
              const T* const row = x + i * strides.image + h * strides.row + c;
              for (const Tap& tap : g_.phases.front().taps) {
                row_of_products(row + source_.offset(tap), strides.pixel * g_.source_step[1], dy, channels_,
                                g_.result[1], count, sums + tap.element * channels_ + c);
              }
            }
          }
        });
}

template <typename T>
void DepthwiseGradient<T>::finish(const Call& call) const {
  if (!add_) return transpose(call.sums, channels_, elements_, channels_, call.dweight, elements_);
  T* const turned = call.scratch;
  transpose(call.sums, channels_, elements_, channels_, turned, elements_);
  for (std::int64_t j = 0; j < sums_size(); ++j) call.dweight[j] += turned[j];
}

template class DepthwiseProduct<float>;
template class DepthwiseProduct<double>;
template class DepthwiseGradient<float>;
template class DepthwiseGradient<double>;

}  // namespace hfta::fusion::cpu
