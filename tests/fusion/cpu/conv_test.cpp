// Compiled convolutions: outputs against loops over every element, gradients against finite differences.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

struct Case {
  std::int64_t n, c, h, w, o, kh, kw;
  Ints stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  std::int64_t groups = 1;
};

SmallGraph graph_of(const Case& k, bool relu) {
  SmallGraph small;
  const ValueId x = small.weight("x", {k.n, k.c, k.h, k.w}), w = small.weight("w", {k.o, k.c / k.groups, k.kh, k.kw}),
                bias = small.weight("bias", {k.o});
  const ValueId y = small.call("aten::conv2d", {x, w, bias, k.stride, k.padding, k.dilation, k.groups});
  if (relu) small.call("aten::relu", {y});
  return small;
}

// Row-major, as ATen has it.
std::vector<double> slow(const Case& k, const std::vector<std::vector<double>>& weights) {
  const std::int64_t oh = (k.h + 2 * k.padding[0] - k.dilation[0] * (k.kh - 1) - 1) / k.stride[0] + 1;
  const std::int64_t ow = (k.w + 2 * k.padding[1] - k.dilation[1] * (k.kw - 1) - 1) / k.stride[1] + 1;
  const std::int64_t per_group = k.c / k.groups;
  std::vector<double> y;
  const auto pixel = [&](std::int64_t n, std::int64_t o, std::int64_t i, std::int64_t j) {
    double sum = weights[2][static_cast<std::size_t>(o)];
    for (std::int64_t c = 0; c < per_group; ++c) {
      for (std::int64_t kh = 0; kh < k.kh; ++kh) {
        for (std::int64_t kw = 0; kw < k.kw; ++kw) {
          const std::int64_t h = i * k.stride[0] - k.padding[0] + kh * k.dilation[0];
          const std::int64_t w = j * k.stride[1] - k.padding[1] + kw * k.dilation[1];
          if (h < 0 || h >= k.h || w < 0 || w >= k.w) continue;
          const std::int64_t channel = o / (k.o / k.groups) * per_group + c;
          sum += weights[0][static_cast<std::size_t>(((n * k.c + channel) * k.h + h) * k.w + w)] *
                 weights[1][static_cast<std::size_t>(((o * per_group + c) * k.kh + kh) * k.kw + kw)];
        }
      }
    }
    return sum;
  };
  for (std::int64_t n = 0; n < k.n; ++n) {
    for (std::int64_t o = 0; o < k.o; ++o) {
      for (std::int64_t i = 0; i < oh; ++i) {
        for (std::int64_t j = 0; j < ow; ++j) y.push_back(pixel(n, o, i, j));
      }
    }
  }
  return y;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {2, 1, 9, 9, 16, 3, 3, {1, 1}, {1, 1}},              // few channels
      {3, 3, 8, 7, 5, 3, 3, {2, 2}, {1, 1}},               //
      {2, 8, 5, 6, 17, 5, 3, {1, 1}, {2, 0}},              //
      {2, 9, 6, 6, 4, 3, 3, {1, 1}, {1, 1}},               // many
      {3, 16, 7, 5, 32, 3, 3, {1, 1}, {1, 1}},             //
      {2, 70, 4, 4, 130, 3, 3, {1, 1}, {1, 1}},            // more than a panel
      {1, 200, 3, 3, 65, 3, 3, {1, 1}, {1, 1}},            // more than a block of inputs
      {40, 20, 2, 2, 24, 3, 3, {1, 1}, {1, 1}},            // all images at once
      {300, 9, 1, 1, 9, 3, 3, {1, 1}, {1, 1}},             // and not
      {2, 12, 9, 9, 13, 3, 3, {2, 2}, {1, 1}},             // strides
      {2, 12, 8, 9, 13, 3, 2, {3, 2}, {0, 1}},             //
      {2, 10, 9, 8, 11, 1, 1, {2, 2}, {0, 0}},             // pixels that nobody sees
      {2, 10, 7, 8, 11, 2, 2, {3, 3}, {0, 0}},             //
      {2, 10, 7, 8, 11, 1, 1, {1, 1}, {0, 0}},             // joined pixels
      {3, 10, 7, 1, 11, 1, 1, {1, 1}, {1, 2}},             // 1x1 with a border
      {2, 9, 9, 9, 10, 3, 3, {1, 1}, {2, 2}, {2, 2}},      // dilations
      {2, 9, 9, 9, 10, 3, 2, {2, 1}, {1, 3}, {3, 2}},      //
      {2, 3, 9, 9, 10, 3, 2, {2, 1}, {1, 3}, {3, 2}},      //
      {2, 9, 4, 4, 10, 2, 2, {1, 1}, {3, 3}},              // a border wider than the kernel
      {2, 12, 6, 6, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},   // groups
      {2, 6, 6, 6, 9, 3, 3, {2, 2}, {1, 1}, {1, 1}, 3},    //
      {2, 10, 5, 5, 20, 1, 1, {1, 1}, {0, 0}, {1, 1}, 5},  //
      {2, 7, 6, 6, 7, 3, 3, {1, 1}, {1, 1}, {1, 1}, 7},    // depthwise
      {2, 100, 6, 5, 100, 3, 3, {2, 2}, {1, 1}, {1, 1}, 100},
      {2, 7, 6, 6, 14, 3, 3, {1, 1}, {1, 1}, {1, 1}, 7},
      {2, 7, 9, 9, 7, 5, 3, {3, 2}, {2, 1}, {1, 2}, 7},
      {4, 32, 4, 4, 32, 3, 3, {1, 1}, {1, 1}},    // tiles
      {1, 33, 10, 10, 35, 3, 3, {1, 1}, {0, 0}},  // no border
      {4, 34, 7, 7, 37, 3, 3, {1, 1}, {1, 1}},    // tiles reach beyond the image
      {2, 33, 6, 9, 40, 3, 3, {1, 1}, {2, 2}},    //
      {2, 32, 8, 6, 36, 3, 3, {1, 1}, {0, 2}},    //
      {16, 32, 2, 2, 33, 3, 3, {1, 1}, {1, 1}},   // images of one tile
      {2, 110, 6, 6, 130, 3, 3, {1, 1}, {1, 1}},  // more than a panel, and than a block
      {1, 32, 40, 36, 32, 3, 3, {1, 1}, {1, 1}},  // more tiles than are transformed at a time
      {37, 32, 6, 6, 32, 3, 3, {1, 1}, {1, 1}},   // images in several calls
      {4, 32, 8, 8, 32, 4, 4, {2, 2}, {1, 1}},    // tiles of parts
      {1, 33, 20, 18, 35, 4, 4, {2, 2}, {0, 0}},  //
      {1, 34, 41, 43, 37, 4, 4, {2, 2}, {1, 2}},  // phases of unlike sizes, tiles reach beyond them
      {2, 110, 8, 8, 130, 4, 4, {2, 2}, {1, 1}},  // more than a panel, and than a block
      {40, 32, 8, 8, 32, 4, 4, {2, 2}, {3, 1}},   // images in several calls
      {2, 32, 8, 8, 33, 2, 2, {1, 1}, {0, 1}},    //
      {2, 33, 9, 8, 32, 4, 2, {2, 1}, {1, 0}},    //
      {1, 32, 16, 12, 33, 6, 6, {2, 2}, {2, 2}},  // 3x3 taps in each part
  };
  return all;
}

std::string text(const Case& k) {
  return std::to_string(k.n) + "x" + std::to_string(k.c) + "x" + std::to_string(k.h) + "x" + std::to_string(k.w) +
         " -> " + std::to_string(k.o) + ", kernel " + std::to_string(k.kh) + "x" + std::to_string(k.kw) + ", groups " +
         std::to_string(k.groups);
}

}  // namespace

TEST_CASE("convolutions: output and gradients") {
  for (const Case& k : cases()) {
    CAPTURE(text(k));
    const SmallGraph small = graph_of(k, false);
    const Outcome outcome = run_training(small);
    const std::vector<double> wanted = slow(k, small.weights);
    REQUIRE(outcome.output.size() == wanted.size());
    double off = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) off = std::max(off, std::abs(outcome.output[i] - wanted[i]));
    CHECK(off < 1e-11);
    check_gradients(small);
  }
}

TEST_CASE("convolutions in float") {
  for (const Case& k : cases()) {
    CAPTURE(text(k));
    check_float(graph_of(k, false));
  }
}

TEST_CASE("a relu behind a convolution is part of it") {
  for (const Case& k : {Case{2, 9, 6, 6, 20, 3, 3, {1, 1}, {1, 1}}, Case{3, 32, 7, 6, 37, 3, 3, {1, 1}, {1, 1}}}) {
    CAPTURE(text(k));
    const SmallGraph small = graph_of(k, true);
    const Outcome outcome = run_training(small);
    std::vector<double> wanted = slow(k, small.weights);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      CHECK(outcome.output[i] == Approx(std::max(wanted[i], 0.0)).margin(1e-12));
    check_gradients(small);
  }
}

TEST_CASE("a chain of convolutions with a value and weights used twice") {
  for (const std::int64_t channels : {9, 34}) {
    CAPTURE(channels);
    SmallGraph small;
    const ValueId x = small.weight("x", {2, channels, 7, 7}), w = small.weight("w", {channels, channels, 3, 3}),
                  bias = small.weight("bias", {channels});
    const Ints one = {1, 1};
    const ValueId first = small.call("aten::conv2d", {x, w, bias, one, one, one, std::int64_t{1}});
    const ValueId active = small.call("aten::relu", {first});
    const ValueId second =
        small.call("aten::conv2d", {active, w, std::monostate{}, one, std::string("same"), one, std::int64_t{1}});
    small.call("aten::add.Tensor", {second, active, 1.0});
    check_gradients(small);
  }
}

TEST_CASE("a convolution's shape says which algorithm computes it") {
  struct Named {
    Case k;
    std::string forward, backward;
  };
  const std::string tiles = "Winograd";
  for (const auto& [k, forward, backward] : {
           Named{{4, 32, 4, 4, 32, 3, 3, {1, 1}, {1, 1}}, tiles, tiles},
           Named{{1, 64, 7, 7, 512, 3, 3, {1, 1}, {1, 1}}, tiles, tiles},
           Named{{3, 32, 4, 4, 32, 3, 3, {1, 1}, {1, 1}}, "direct", "direct"},  // few tiles
           Named{{9, 32, 5, 5, 32, 3, 3, {1, 1}, {1, 1}}, "direct", "direct"},  // that hold few pixels
           Named{{4, 31, 4, 4, 32, 3, 3, {1, 1}, {1, 1}}, "direct", "direct"},  // few channels
           Named{{4, 32, 4, 4, 31, 3, 3, {1, 1}, {1, 1}}, "direct", "direct"},  //
           Named{{9, 32, 4, 4, 32, 3, 3, {1, 1}, {2, 0}}, tiles, tiles},        //
           Named{{9, 32, 3, 3, 32, 3, 3, {1, 1}, {2, 2}}, "direct", "direct"},  // of y 5 x 5, of x 3 x 3
           Named{{9, 32, 6, 6, 32, 3, 3, {1, 1}, {3, 3}}, "direct", "direct"},  // a wide border
           Named{{9, 32, 8, 8, 32, 3, 3, {2, 2}, {1, 1}}, "direct", "direct"},  //
           Named{{9, 32, 8, 8, 32, 3, 3, {1, 1}, {2, 2}, {2, 2}}, "direct", "direct"},
           Named{{9, 64, 8, 8, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2}, "direct", "direct"},
           Named{{9, 32, 8, 8, 32, 5, 5, {1, 1}, {2, 2}}, "direct", "direct"},
           Named{{9, 32, 8, 8, 32, 4, 4, {2, 2}, {1, 1}}, tiles, tiles},
           Named{{9, 32, 8, 8, 32, 4, 2, {2, 1}, {1, 1}}, tiles, tiles},
           Named{{9, 32, 8, 8, 32, 2, 2, {1, 1}}, "direct", "weight direct, input Winograd"},  // of y 7 x 7
           Named{{9, 32, 8, 8, 32, 4, 4, {1, 1}, {1, 1}}, "direct", "direct"},  // taps that are not 2 x 2 a part
           Named{{9, 32, 9, 9, 32, 6, 6, {3, 3}, {3, 3}}, "direct", "direct"},  //
           Named{{1, 32, 1, 20, 32, 3, 3, {1, 1}, {2, 1}}, tiles, "weight Winograd, input direct"},  // of y 3 x 20
           Named{{9, 3, 8, 8, 32, 3, 3, {1, 1}, {1, 1}}, "few channels", "weight few channels, input direct"},
           Named{{9, 32, 8, 8, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 32}, "depthwise", "depthwise"},
       }) {
    CAPTURE(text(k));
    CHECK(algorithms(graph_of(k, false), "aten::conv2d") == std::vector<std::string>{forward, backward});
  }
}

TEST_CASE("a pixel that is not finite stays in its image") {
  const Case k{3, 32, 7, 6, 33, 3, 3, {1, 1}, {1, 1}};
  SmallGraph small = graph_of(k, false);
  const Outcome sound = run_training(small);
  small.weights[0][1 * 32 * 42 + 20] = std::numeric_limits<double>::infinity();
  const Outcome outcome = run_training(small);
  constexpr std::size_t kImage = 33 * 42;
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    if (i / kImage != 1) CHECK(outcome.output[i] == sound.output[i]);
  }
  CHECK_FALSE(std::isfinite(outcome.output[kImage + 20]));
}

TEST_CASE("convolutions of lines") {
  for (const std::int64_t groups : {1, 3}) {
    SmallGraph small;
    const ValueId x = small.weight("x", {2, 12, 9}), w = small.weight("w", {6, 12 / groups, 3}),
                  bias = small.weight("bias", {6});
    small.call("aten::conv1d", {x, w, bias, Ints{2}, Ints{1}, Ints{1}, groups});
    const Outcome outcome = run_training(small);
    const Case k{2, 12, 1, 9, 6, 1, 3, {1, 2}, {0, 1}, {1, 1}, groups};
    const std::vector<double> wanted = slow(k, small.weights);
    REQUIRE(outcome.sizes == Dims{2, 6, 5});
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(outcome.output[i] == Approx(wanted[i]).margin(1e-12));
    check_gradients(small);
  }
}

TEST_CASE("transposed convolutions are the gradients of convolutions") {
  struct Transposed {
    std::int64_t n, c, h, w, o, kernel, stride, padding, more, dilation, groups;
  };
  for (const Transposed& k :
       {Transposed{2, 70, 3, 4, 9, 4, 2, 1, 0, 1, 1}, Transposed{2, 9, 1, 1, 66, 4, 1, 0, 0, 1, 1},
        Transposed{3, 10, 4, 3, 3, 3, 2, 1, 1, 1, 1}, Transposed{2, 6, 4, 4, 4, 2, 3, 0, 2, 2, 2},
        Transposed{2, 5, 4, 4, 5, 3, 2, 1, 1, 1, 5}, Transposed{2, 5, 4, 4, 7, 1, 1, 0, 0, 1, 1},
        Transposed{4, 33, 4, 5, 36, 3, 1, 1, 0, 1, 1}}) {
    CAPTURE(k.c, k.o, k.kernel, k.stride, k.padding, k.groups);
    SmallGraph small;
    const ValueId x = small.weight("x", {k.n, k.c, k.h, k.w}),
                  w = small.weight("w", {k.c, k.o / k.groups, k.kernel, k.kernel}), bias = small.weight("bias", {k.o});
    small.call("aten::conv_transpose2d.input", {x, w, bias, Ints{k.stride, k.stride}, Ints{k.padding, k.padding},
                                                Ints{k.more, k.more}, k.groups, Ints{k.dilation, k.dilation}});
    const Outcome outcome = run_training(small);
    const std::int64_t reach = k.dilation * (k.kernel - 1) + 1 + k.more - 2 * k.padding;
    const std::int64_t oh = (k.h - 1) * k.stride + reach, ow = (k.w - 1) * k.stride + reach;
    REQUIRE(outcome.sizes == Dims{k.n, k.o, oh, ow});
    std::vector<double> wanted(outcome.output.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = small.weights[2][i / static_cast<std::size_t>(oh * ow) % static_cast<std::size_t>(k.o)];
    const std::int64_t per_group = k.o / k.groups;
    for (std::int64_t i = 0; i < k.n * k.c * k.h * k.w; ++i) {
      const std::int64_t h = i / k.w % k.h, c = i / k.w / k.h % k.c, n = i / k.w / k.h / k.c;
      for (std::int64_t j = 0; j < per_group * k.kernel * k.kernel; ++j) {
        const std::int64_t to_h = h * k.stride - k.padding + j / k.kernel % k.kernel * k.dilation;
        const std::int64_t to_w = i % k.w * k.stride - k.padding + j % k.kernel * k.dilation;
        const std::int64_t o = c / (k.c / k.groups) * per_group + j / k.kernel / k.kernel;
        if (to_h < 0 || to_h >= oh || to_w < 0 || to_w >= ow) continue;
        wanted[static_cast<std::size_t>(((n * k.o + o) * oh + to_h) * ow + to_w)] +=
            small.weights[0][static_cast<std::size_t>(i)] *
            small.weights[1][static_cast<std::size_t>(c * per_group * k.kernel * k.kernel + j)];
      }
    }
    double off = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) off = std::max(off, std::abs(outcome.output[i] - wanted[i]));
    CHECK(off < 1e-11);
    check_gradients(small);
    check_float(small);
  }
}

}  // namespace hfta::fusion::cpu::testing
