#include "fusion/cpu/kernels/conv_geometry.hpp"

#include <algorithm>
#include <utility>

namespace hfta::fusion::cpu {
namespace {

// A phase along one dimension: where its pixels begin, how many they are, and (offset in the source, kernel row).
struct Line {
  std::int64_t begin = 0, count = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> taps;
};

std::vector<Line> backward_lines(const ConvShape& s, std::size_t d) {
  std::vector<Line> lines;
  for (std::int64_t phase = 0; phase < std::min(s.stride[d], s.in[d]); ++phase) {
    Line line{phase, (s.in[d] - phase + s.stride[d] - 1) / s.stride[d], {}};
    for (std::int64_t k = s.kernel[d]; k-- > 0;) {
      const std::int64_t from = phase + s.padding[d] - k * s.dilation[d];
      if (from % s.stride[d] == 0) line.taps.emplace_back(from / s.stride[d], k);
    }
    lines.push_back(line);
  }
  return lines;
}

Phase crossed(const Line& rows, const Line& columns, const Pair& before, std::int64_t kernel_width) {
  Phase phase{{rows.begin, columns.begin}, {rows.count, columns.count}, {}};
  for (const auto& [h, kh] : rows.taps) {
    for (const auto& [w, kw] : columns.taps) {
      phase.taps.push_back({{h + before[0], w + before[1]}, kh * kernel_width + kw});
    }
  }
  return phase;
}

}  // namespace

Pair conv_output(const ConvShape& s) {
  Pair out;
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t room = s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    out[d] = room < 0 ? 0 : room / s.stride[d] + 1;
  }
  return out;
}

ConvShape joined_pixels(ConvShape s) {
  if (s.taps() != 1 || s.stride != Pair{1, 1} || s.padding != Pair{0, 0}) return s;
  const std::int64_t pixels = s.n * s.in[0] * s.in[1];
  std::int64_t width = std::min<std::int64_t>(128, pixels);
  while (width > 1 && pixels % width != 0) --width;
  if (width < s.in[1]) return s;
  s.n = pixels / std::max<std::int64_t>(width, 1);
  s.in = {1, width};
  s.out = s.in;
  return s;
}

std::int64_t images_at_once(const ConvShape& s) {
  constexpr std::int64_t kPixels = 512;
  const std::int64_t pixels = std::max<std::int64_t>(s.out[0] * s.out[1], 1);
  return std::clamp<std::int64_t>((kPixels + pixels - 1) / pixels, 1, std::max<std::int64_t>(s.n, 1));
}

TapGeometry forward_taps(const ConvShape& s) {
  TapGeometry g{s.in, s.out, s.stride, {1, 1}, s.padding, {}, {}};
  Phase all{{0, 0}, s.out, {}};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t reach = (s.out[d] - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
    g.bordered[d] = std::max(s.in[d] + s.padding[d], reach);
  }
  for (std::int64_t kh = 0; kh < s.kernel[0]; ++kh) {
    for (std::int64_t kw = 0; kw < s.kernel[1]; ++kw) {
      all.taps.push_back({{kh * s.dilation[0], kw * s.dilation[1]}, kh * s.kernel[1] + kw});
    }
  }
  g.phases.push_back(std::move(all));
  return g;
}

TapGeometry backward_taps(const ConvShape& s) {
  TapGeometry g{s.out, s.in, {1, 1}, s.stride, {}, s.out, {}};
  const std::vector<Line> lines[2] = {backward_lines(s, 0), backward_lines(s, 1)};
  for (std::size_t d = 0; d < 2; ++d) {
    std::int64_t last = s.out[d] - 1;
    for (const Line& line : lines[d]) {
      for (const auto& [from, k] : line.taps) {
        g.before[d] = std::max(g.before[d], -from);
        last = std::max(last, from + line.count - 1);
      }
    }
    g.bordered[d] = g.before[d] + last + 1;
  }
  for (const Line& rows : lines[0]) {
    for (const Line& columns : lines[1]) g.phases.push_back(crossed(rows, columns, g.before, s.kernel[1]));
  }
  return g;
}

}  // namespace hfta::fusion::cpu
