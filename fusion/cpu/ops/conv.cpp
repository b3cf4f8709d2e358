// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] -> [N, O, H', W'], channels last in memory.
#include "fusion/cpu/kernels/conv.hpp"

#include <memory>
#include <utility>

#include "fusion/cpu/kernels/conv_gradient.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Conv {
  Tensor x, weight, bias, y;
  bool relu = false;
  ConvShape shape;
};

template <typename T>
void forward(Builder& b, const Conv& c) {
  const auto product = std::make_shared<const TapProduct<T>>(c.shape, false, false);
  const Tensor scratch = b.fresh({product->scratch()});
  const std::int64_t n = c.shape.n, step = images_at_once(c.shape);
  b.emit({c.x, c.weight, c.bias, c.y, scratch}, [=](const Run& run) {
    for (std::int64_t i = 0; i < n; i += step) {
      (*product)({.first = i,
                  .images = std::min(step, n - i),
                  .source = run.at<T>(c.x),
                  .weight = run.at<T>(c.weight),
                  .result = run.at<T>(c.y),
                  .scratch = run.at<T>(scratch),
                  .bias = c.bias.defined() ? run.at<T>(c.bias) : nullptr,
                  .relu = c.relu});
    }
  });
}

// All of an image's gradients at once, while it is in the cache.
template <typename T>
void backward(Builder& b, const Conv& c) {
  const auto given = b.gradient(c.y);
  if (!given) return;
  const bool wants_bias = b.wants_gradient(c.bias), wants_weight = b.wants_gradient(c.weight),
             wants_x = b.wants_gradient(c.x);
  const Builder::Part db = wants_bias ? b.contribute(c.bias) : Builder::Part{};
  const Builder::Part dw = wants_weight ? b.contribute(c.weight) : Builder::Part{};
  const Builder::Part dx = wants_x ? b.contribute(c.x) : Builder::Part{};
  const auto sums = wants_weight ? std::make_shared<const WeightGradient<T>>(c.shape, dw.add) : nullptr;
  const auto product = wants_x ? std::make_shared<const TapProduct<T>>(c.shape, true, dx.add) : nullptr;
  const Tensor sums_scratch = wants_weight ? b.fresh({sums->scratch()}) : Tensor{};
  const Tensor scratch = wants_x ? b.fresh({product->scratch()}) : Tensor{};
  const std::int64_t n = c.shape.n, step = images_at_once(c.shape), pixels = c.shape.out[0] * c.shape.out[1],
                     channels = c.shape.o;
  b.emit({c.x, c.weight, c.y, *given, db.tensor, dw.tensor, dx.tensor, sums_scratch, scratch},
         [=, t = *given](const Run& run) {
           T* const dy = run.at<T>(t);
           for (std::int64_t i = 0; i < n; i += step) {
             const std::int64_t images = std::min(step, n - i), at = i * pixels * channels;
             if (wants_bias || c.relu) {
               mask_and_sum(dy + at, c.relu ? run.at<T>(c.y) + at : nullptr, channels, images * pixels, channels,
                            wants_bias ? run.at<T>(db.tensor) : nullptr, db.add || i > 0);
             }
             if (wants_weight) {
               (*sums)({.first = i,
                        .images = images,
                        .x = run.at<T>(c.x),
                        .dy = dy,
                        .dweight = run.at<T>(dw.tensor),
                        .scratch = run.at<T>(sums_scratch)});
             }
             if (wants_x) {
               (*product)({.first = i,
                           .images = images,
                           .source = dy,
                           .weight = run.at<T>(c.weight),
                           .result = run.at<T>(dx.tensor),
                           .scratch = run.at<T>(scratch)});
             }
           }
         });
}

Pair pair_of(const Dims& sizes) { return {sizes.front(), sizes.back()}; }

// Lines are images of one row.
Pair line_of(const Dims& sizes, std::int64_t other) { return {other, sizes.front()}; }

constexpr std::int64_t kImages[] = {0, 2, 3, 1}, kLines[] = {0, 2, 1};

Tensor fresh_channels_last(Builder& b, const ConvShape& s, bool lines) {
  if (lines) return b.fresh({s.n, s.out[1], s.o}).permuted(kLines);
  constexpr std::int64_t kBack[] = {0, 3, 1, 2};
  return b.fresh({s.n, s.out[0], s.out[1], s.o}).permuted(kBack);
}

// Schema: input, weight, bias, stride, padding, dilation, groups.
template <bool kIsLines>
void conv(Site& site) {
  Builder& b = site.b;
  Conv c;
  const std::span<const std::int64_t> order = kIsLines ? std::span<const std::int64_t>(kLines) : kImages;
  if (site.tensor(0).sizes.size() != order.size()) site.fail("its input has no batch");
  c.x = b.in_order(site.tensor(0), order);
  c.weight = b.contiguous(site.tensor(1));
  if (!site.is_none(2)) c.bias = b.contiguous(site.tensor(2));
  const auto pair = [&](std::size_t i, std::int64_t other) {
    return kIsLines ? line_of(site.ints(i), other) : pair_of(site.ints(i));
  };
  ConvShape& s = c.shape;
  s.n = c.x.size(0);
  s.c = c.x.size(1);
  s.o = c.weight.size(0);
  s.in = {kIsLines ? 1 : c.x.size(-2), c.x.size(-1)};
  s.kernel = {kIsLines ? 1 : c.weight.size(-2), c.weight.size(-1)};
  s.stride = pair(3, 1);
  s.dilation = pair(5, 1);
  s.groups = site.integer(6);
  if (const auto* how = std::get_if<std::string>(&site.node().args.at(4))) {
    if (*how == "same") {
      for (std::size_t d = 0; d < 2; ++d) {
        const std::int64_t both = s.dilation[d] * (s.kernel[d] - 1);
        if (both % 2 != 0) site.fail("padding 'same' of an even kernel");
        s.padding[d] = both / 2;
      }
    }
  } else {
    s.padding = pair(4, 0);
  }
  s.out = conv_output(s);
  if (s.n * s.out[0] * s.out[1] == 0) site.fail("its output is empty");
  c.y = fresh_channels_last(b, s, kIsLines);
  s = joined_pixels(s);
  const ValueId output = fused_relu(site, c.relu);
  typed(b.dtype(), [&]<typename T>() { forward<T>(b, c); });
  b.differentiable({c.x, c.weight, c.bias}, {c.y},
                   [&b, c] { typed(b.dtype(), [&]<typename T>() { backward<T>(b, c); }); });
  b.bind(output, c.y);
}

}  // namespace

std::vector<NamedCompiler> conv_ops() {
  return {{"aten::conv2d", conv<false>},
          {"aten::conv2d.padding", conv<false>},
          {"aten::conv1d", conv<true>},
          {"aten::conv1d.padding", conv<true>}};
}

}  // namespace hfta::fusion::cpu
