#include <utility>

#include "fusion/cpu/kernels/conv.hpp"

namespace hfta::fusion::cpu {

bool has_few_channels(const ConvShape& s) {
  constexpr std::int64_t kFew = 8;
  return s.groups == 1 && s.taps() > 1 && s.c <= kFew;
}

Source::Source(TapGeometry geometry, std::int64_t images, std::int64_t channels, std::int64_t block)
    : g_(std::move(geometry)), images_(images), channels_(channels), block_(block), copied_(g_.has_border()) {
  const std::int64_t pixel = copied_ ? block_ : channels_;
  row_ = g_.bordered[1] * pixel;
  strides_ = {copied_ ? images * g_.bordered[0] * row_ : block, g_.bordered[0] * row_, g_.source_step[0] * row_, pixel};
  if (copied_) bordered_ = (channels + block - 1) / block * strides_.block;
}

template <typename T>
const T* Source::prepare(Team* team, const T* from, std::int64_t images, T* scratch) const {
  if (!copied_) return from;
  const TapGeometry& g = g_;
  const std::int64_t size = g.bordered[0] * g.bordered[1] * block_, blocks = (channels_ + block_ - 1) / block_;
  share(team, stretches_of(blocks * images, size), [&](std::int64_t first, std::int64_t count, int) {
    for (std::int64_t each = first; each < first + count; ++each) {
      const std::int64_t block = each / images, i = each % images;
      copy_bordered(g, channels_, block * block_, block_, from + i * g.source[0] * g.source[1] * channels_,
                    scratch + block * strides_.block + i * size);
    }
  });
  return scratch;
}

template const float* Source::prepare(Team*, const float*, std::int64_t, float*) const;
template const double* Source::prepare(Team*, const double*, std::int64_t, double*) const;

}  // namespace hfta::fusion::cpu
