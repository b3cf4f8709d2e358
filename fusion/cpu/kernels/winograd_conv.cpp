#include <algorithm>

#include "fusion/cpu/kernels/winograd.hpp"

namespace hfta::fusion::cpu {
namespace {

// r of a kernel with r * stride taps in each dimension; 0: it has not.
std::int64_t taps_of_part(const ConvShape& s) {
  const std::int64_t r = s.kernel[0] / s.stride[0];
  return s.kernel == Pair{r * s.stride[0], r * s.stride[1]} ? r : 0;
}

Pair largest(const std::vector<Phase>& phases) {
  Pair all = {};
  for (const Phase& phase : phases) {
    for (std::size_t d = 0; d < 2; ++d) all[d] = std::max(all[d], phase.count[d]);
  }
  return all;
}

// Numbers of products for an image, over all phases and parts.
struct Products {
  std::int64_t direct = 0, in_tiles = 0;
};

Products products_of(const ConvShape& s, bool backward, std::int64_t r) {
  const Pair& pixels = backward ? s.in : s.out;
  const std::int64_t parts = s.stride[0] * s.stride[1];
  Products all;
  all.direct = r * r * pixels[0] * pixels[1] * (backward ? 1 : parts);
  const Pair phase =
      backward ? Pair{(s.in[0] + s.stride[0] - 1) / s.stride[0], (s.in[1] + s.stride[1] - 1) / s.stride[1]} : s.out;
  all.in_tiles = parts * tile_places(r) * TileGrid{phase}.tiles();
  return all;
}

}  // namespace

bool winograd_pays(const ConvShape& s, bool backward) {
  constexpr std::int64_t kChannels = 32, kTiles = 16, kStride = 2;
  const std::int64_t r = taps_of_part(s);
  const bool can = (r == 2 || r == 3) && s.dilation == Pair{1, 1} && s.groups == 1 && s.padding[0] < s.kernel[0] &&
                   s.padding[1] < s.kernel[1] && std::max(s.stride[0], s.stride[1]) <= kStride;
  if (!can || s.c < kChannels || s.o < kChannels) return false;
  const Products all = products_of(s, backward, r);
  const std::int64_t parts = s.stride[0] * s.stride[1], tiles = all.in_tiles / (tile_places(r) * parts);
  return s.n * tiles >= kTiles && 5 * all.direct >= 8 * all.in_tiles;
}

TiledConv::TiledConv(const ConvShape& s, bool backward)
    : r(taps_of_part(s)), geometry(backward ? backward_taps(s) : forward_taps(s)), grid{largest(geometry.phases)} {
  const Pair& step = geometry.source_step;
  for (const cpu::Phase& phase : geometry.phases) {
    Phase tiled{phase.begin, phase.count, std::vector<TilePart>(static_cast<std::size_t>(step[0] * step[1]))};
    for (const Tap& tap : phase.taps) {
      TilePart& part = tiled.parts[static_cast<std::size_t>(tap.at[0] % step[0] * step[1] + tap.at[1] % step[1])];
      if (part.elements.empty()) part.first = tap;
      part.elements.push_back(tap.element);
    }
    for (const TilePart& part : tiled.parts) {
      for (std::size_t d = 0; d < 2; ++d) {
        const std::int64_t last = 2 * (d == 0 ? grid.rows() : grid.columns()) + r - 2;  // the part's last pixel
        geometry.bordered[d] = std::max(geometry.bordered[d], part.first.at[d] + last * step[d] + 1);
      }
    }
    phases.push_back(std::move(tiled));
  }
}

}  // namespace hfta::fusion::cpu
