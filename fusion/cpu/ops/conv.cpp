// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] -> [N, O, H', W'], channels last in memory.
#include <algorithm>
#include <string>
#include <utility>

#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/ops/conv_passes.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kImages[] = {0, 2, 3, 1}, kLines[] = {0, 2, 1};
constexpr std::int64_t kLargest = std::int64_t{1} << 20;  // stride, padding, ...: their products stay numbers

// The rest of every convolution: `out` are y's pixels.
void finish(LoweringContext& site, Conv c, const Pair& out, bool lines) {
  Builder& b = site.b;
  const std::int64_t n = c.shape.n, channels = c.channels();
  if (product(Dims{n, out[0], out[1], channels}) == 0 || c.shape.in[0] * c.shape.in[1] == 0) {
    site.fail("its output is empty");
  }
  constexpr std::int64_t kBack[] = {0, 3, 1, 2};
  c.y =
      lines ? b.fresh({n, out[1], channels}).permuted(kLines) : b.fresh({n, out[0], out[1], channels}).permuted(kBack);
  c.shape = joined_pixels(c.shape);
  c.relu = fused_relu(site);
  emit_conv(b, c);
  site.bind(c.y);
}

template <bool kIsLines>
Conv tensors(LoweringContext& site) {
  Builder& b = site.b;
  const std::span<const std::int64_t> order = kIsLines ? std::span<const std::int64_t>(kLines) : kImages;
  const Tensor x = site.floats(0), weight = site.floats(1);
  if (x.sizes.size() != order.size()) site.fail("its input has no batch");
  if (weight.sizes.size() != order.size() || weight.numel() == 0) {
    site.fail("its weight is empty, or of another number of dimensions than its input");
  }
  Conv c;
  c.x = b.in_order(x, order);
  c.weight = b.contiguous(weight);
  if (!site.is_none(2)) c.bias = b.contiguous(site.floats(2));
  c.shape.n = c.x.size(0);
  c.shape.kernel = {kIsLines ? 1 : c.weight.size(-2), c.weight.size(-1)};
  return c;
}

// Height and width; a line's height is `other`.
template <bool kIsLines>
Pair pair_of(const LoweringContext& site, std::size_t i, std::int64_t other) {
  const Dims sizes = site.ints(i);
  constexpr std::size_t kDims = kIsLines ? 1 : 2;
  if (sizes.size() != kDims && sizes.size() != 1) site.fail("its stride, padding or dilation has too many sizes");
  return {kIsLines ? other : sizes.front(), sizes.back()};
}

template <bool kIsLines>
Pair pixels_of(const Tensor& x) {
  return {kIsLines ? 1 : x.size(-2), x.size(-1)};
}

// Checks that kernels can be made: `channels` of x, and of y as the weight has them.
void check(const LoweringContext& site, const Conv& c, std::int64_t in, std::int64_t out) {
  const ConvShape& s = c.shape;
  const auto within = [](const Pair& p, std::int64_t least) {
    return std::all_of(p.begin(), p.end(), [&](std::int64_t v) { return v >= least && v < kLargest; });
  };
  if (!within(s.stride, 1) || !within(s.dilation, 1) || !within(s.padding, 0) || !within(s.kernel, 1)) {
    site.fail("its stride, padding, dilation or kernel is none");
  }
  if (s.groups < 1 || s.c % s.groups != 0 || s.o % s.groups != 0)
    site.fail("its channels cannot be divided into groups");
  if (c.x.size(1) != in) site.fail("its input has another number of channels than its weight");
  if (c.bias.defined() && c.bias.sizes != Dims{out})
    site.fail("its bias has another number of channels than its weight");
}

Pair same_padding(const LoweringContext& site, const ConvShape& s) {
  Pair padding;
  for (std::size_t d = 0; d < 2; ++d) {
    if (s.dilation[d] < 1 || s.dilation[d] >= kLargest || s.kernel[d] >= kLargest) site.fail("its dilation is none");
    const std::int64_t both = s.dilation[d] * (s.kernel[d] - 1);
    if (both % 2 != 0) site.fail("padding 'same' of an even kernel");
    padding[d] = both / 2;
  }
  return padding;
}

// Schema: input, weight, bias, stride, padding, dilation, groups.
template <bool kIsLines>
void conv(LoweringContext& site) {
  Conv c = tensors<kIsLines>(site);
  ConvShape& s = c.shape;
  s.c = c.x.size(1);
  s.o = c.weight.size(0);
  s.in = pixels_of<kIsLines>(c.x);
  s.stride = pair_of<kIsLines>(site, 3, 1);
  s.dilation = pair_of<kIsLines>(site, 5, 1);
  s.groups = site.integer(6);
  if (const auto* how = site.argument<std::string>(4)) {
    if (*how != "same" && *how != "valid") site.fail("its padding is neither same nor valid");
    if (*how == "same") s.padding = same_padding(site, s);
  } else {
    s.padding = pair_of<kIsLines>(site, 4, 0);
  }
  check(site, c, c.weight.size(1) * std::clamp<std::int64_t>(s.groups, 1, s.o), s.o);
  s.out = conv_output(s);
  finish(site, c, s.out, kIsLines);
}

// Schema: input, weight [C, O / groups, kh, kw], bias, stride, padding, output_padding, groups, dilation.
template <bool kIsLines>
void conv_transpose(LoweringContext& site) {
  Conv c = tensors<kIsLines>(site);
  c.transposed = true;
  ConvShape& s = c.shape;
  s.groups = site.integer(6);
  s.o = c.x.size(1);
  if (s.groups < 1 || s.groups > s.o) site.fail("its channels cannot be divided into groups");
  s.c = c.weight.size(1) * s.groups;
  s.out = pixels_of<kIsLines>(c.x);
  s.stride = pair_of<kIsLines>(site, 3, 1);
  s.padding = pair_of<kIsLines>(site, 4, 0);
  s.dilation = pair_of<kIsLines>(site, 7, 1);
  const Pair more = pair_of<kIsLines>(site, 5, 0);
  check(site, c, c.weight.size(0), s.c);
  if (std::any_of(more.begin(), more.end(), [](std::int64_t m) { return m < 0; }))
    site.fail("its output padding is none");
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
    if (more[d] >= s.stride[d]) site.fail("its output padding is not smaller than its stride");
    s.in[d] = std::max<std::int64_t>((s.out[d] - 1) * s.stride[d] - 2 * s.padding[d] + reach + more[d], 0);
  }
  if (conv_output(s) != s.out) site.fail("its output padding is not smaller than its stride");
  finish(site, c, s.in, kIsLines);
}

}  // namespace

std::vector<NamedCompiler> conv_ops() {
  return {{"aten::conv2d", conv<false>},
          {"aten::conv2d.padding", conv<false>},
          {"aten::conv1d", conv<true>},
          {"aten::conv1d.padding", conv<true>},
          {"aten::conv_transpose2d.input", conv_transpose<false>},
          {"aten::conv_transpose1d", conv_transpose<true>}};
}

}  // namespace hfta::fusion::cpu
