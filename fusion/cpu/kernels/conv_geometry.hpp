#pragma once
/// Geometry of convolutions: the input pixels that each output pixel is made of.

#include <array>
#include <cstdint>
#include <vector>

namespace hfta::fusion::cpu {

using Pair = std::array<std::int64_t, 2>;  ///< Height, width.

struct ConvShape {
  std::int64_t n = 0, c = 0, o = 0;  ///< Images; channels of input and output, all groups'.
  Pair in = {}, out = {};            ///< Pixels.
  Pair kernel = {1, 1}, stride = {1, 1}, padding = {}, dilation = {1, 1};
  std::int64_t groups = 1;

  [[nodiscard]] std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

/// Sizes of the output.
[[nodiscard]] Pair conv_output(const ConvShape& shape);
/// A convolution of single pixels (1x1, stride 1, no padding) looks at no neighbours: its pixels may be cut anew into
/// rows of about 128. Other shapes stay.
[[nodiscard]] ConvShape joined_pixels(ConvShape shape);
/// Images that the passes work on at a time, so that they stay in the second cache and weights pay for being read.
[[nodiscard]] std::int64_t images_at_once(const ConvShape& shape);
/// Elements rounded up to whole lines of a cache, so that threads write to no common one.
[[nodiscard]] constexpr std::int64_t whole_lines(std::int64_t elements) { return (elements + 15) / 16 * 16; }

/// One element of the kernel, as output pixels of a phase see it.
struct Tap {
  Pair at = {};              ///< Position in the bordered source that the phase's first pixel reads.
  std::int64_t element = 0;  ///< Position in the kernel: row * width + column.
};

/// Output pixels begin, begin + step, ...: they read the same taps.
struct Phase {
  Pair begin = {}, count = {};
  std::vector<Tap> taps;  ///< None: these pixels are 0.
};

/// result[begin + i * result_step] = sum over taps of source[at + i * source_step] * kernel[element].
struct TapGeometry {
  Pair source = {}, result = {};
  Pair source_step = {1, 1}, result_step = {1, 1};
  Pair before = {};    ///< Zeros before the source's first row and column.
  Pair bordered = {};  ///< The source's sizes with all zeros around it.
  std::vector<Phase> phases;

  [[nodiscard]] bool has_border() const { return bordered != source; }
};

/// y from x.
[[nodiscard]] TapGeometry forward_taps(const ConvShape& shape);
/// The gradient of x from that of y: one phase for each remainder by the stride.
[[nodiscard]] TapGeometry backward_taps(const ConvShape& shape);

}  // namespace hfta::fusion::cpu
