// x [N, C, H, W] -> [N, C, H', W'], channels last in memory; lines are images of one row.
#include "fusion/cpu/kernels/pool.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kImages[] = {0, 2, 3, 1}, kLines[] = {0, 2, 1};

struct Pool {
  Tensor x, y, where;
  std::shared_ptr<PoolShape> shape;
};

struct Spatial {  // one dimension's arguments
  std::int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool ceil = false, count_padding = true;
};

constexpr std::int64_t kLargest = std::int64_t{1} << 20;  // bound of sizes of one dimension: their products fit

// Checks windows as PyTorch does: more padding would leave windows that see nothing.
void check(const LoweringContext& site, const Spatial& s) {
  const bool fits = s.kernel >= 1 && s.stride >= 1 && s.dilation >= 1 && s.padding >= 0 && s.kernel < kLargest &&
                    s.stride < kLargest && s.dilation < kLargest && 2 * s.padding <= s.dilation * (s.kernel - 1) + 1;
  if (!fits) site.fail("its window, stride, padding or dilation is none");
}

// PyTorch's sizes: with `ceil`, a last window that begins in the padding behind the image is left out.
std::int64_t output_size(std::int64_t in, const Spatial& s) {
  const std::int64_t room = in + 2 * s.padding - s.dilation * (s.kernel - 1) - 1;
  if (room < 0) return 0;
  std::int64_t out = (room + (s.ceil ? s.stride - 1 : 0)) / s.stride + 1;
  if (s.ceil && (out - 1) * s.stride >= in + s.padding) --out;
  return out;
}

std::vector<Window> windows_of(std::int64_t in, const Spatial& s) {
  std::vector<Window> windows;
  for (std::int64_t o = 0; o < output_size(in, s); ++o) {
    const std::int64_t begin = o * s.stride - s.padding;
    const std::int64_t skipped = begin < 0 ? (-begin + s.dilation - 1) / s.dilation : 0;
    const std::int64_t first = begin + skipped * s.dilation;
    const std::int64_t count =
        std::clamp<std::int64_t>((in - first + s.dilation - 1) / s.dilation, 0, s.kernel - skipped);
    const std::int64_t padded = std::min(begin + s.kernel, in + s.padding) - begin;
    windows.push_back({first, count, s.count_padding ? padded : std::max<std::int64_t>(count, 1)});
  }
  return windows;
}

std::vector<Window> adaptive_windows(std::int64_t in, std::int64_t out) {
  std::vector<Window> windows;
  for (std::int64_t o = 0; o < out; ++o) {
    const std::int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    windows.push_back({begin, end - begin, end - begin});
  }
  return windows;
}

template <typename T>
void emit(Builder& b, const Pool& p, bool largest) {
  if (largest) {
    const bool kept = p.where.defined();
    b.emit({p.x, p.y, p.where}, [=](const Run& run) {
      max_pool(run.team, *p.shape, run.at<T>(p.x), run.at<T>(p.y), kept ? run.at<std::uint16_t>(p.where) : nullptr);
    });
    const auto again = [=](const Run& run) { max_pool(run.team, *p.shape, run.at<T>(p.x), run.at<T>(p.y), nullptr); };
    b.recomputable(p.y, {p.x, p.y}, again, RecomputeCost::kPass);
  } else {
    const auto kernel = [=](const Run& run) { mean_pool(run.team, *p.shape, run.at<T>(p.x), run.at<T>(p.y)); };
    b.emit({p.x, p.y}, kernel);
    b.recomputable(p.y, {p.x, p.y}, kernel, RecomputeCost::kPass);
  }
  b.differentiable({p.x}, {p.y}, [=, &b] {
    const auto dy = b.gradient(p.y);
    if (!dy) return;
    const Builder::Part dx = b.contribute(p.x);
    b.emit({*dy, p.where, dx.tensor}, [=, dy = *dy](const Run& run) {
      if (largest) {
        max_pool_backward(run.team, *p.shape, run.at<T>(dy), run.at<std::uint16_t>(p.where), run.at<T>(dx.tensor),
                          dx.add);
      } else {
        mean_pool_backward(run.team, *p.shape, run.at<T>(dy), run.at<T>(dx.tensor), dx.add);
      }
    });
  });
}

// `windows`: of one dimension, given its size and its position among height and width.
template <typename WindowsOf>
void pool(LoweringContext& site, bool lines, bool largest, double divisor, std::int64_t step_h, std::int64_t step_w,
          WindowsOf windows) {
  Builder& b = site.b;
  const std::span<const std::int64_t> order = lines ? std::span<const std::int64_t>(kLines) : kImages;
  const Tensor x = site.floats(0);
  if (x.sizes.size() != order.size()) site.fail("its input has no batch");
  if (x.numel() == 0 || x.size(-1) >= kLargest || x.size(-2) >= kLargest) site.fail("its input is empty, or too long");
  Pool p;
  p.x = b.in_order(x, order);
  p.shape = std::make_shared<PoolShape>();
  PoolShape& s = *p.shape;
  s.n = p.x.size(0);
  s.channels = p.x.size(1);
  s.in = {lines ? 1 : p.x.size(-2), p.x.size(-1)};
  s.step = {step_h, step_w};
  s.divisor = divisor;
  s.windows = {lines ? std::vector<Window>{{0, 1, 1}} : windows(s.in[0], 0), windows(s.in[1], 1)};
  if (s.outputs() == 0) site.fail("its output is empty");
  for (const std::vector<Window>& along : s.windows) {
    if (std::any_of(along.begin(), along.end(), [](const Window& w) { return w.count < 1; })) {
      site.fail("one of its windows sees nothing");
    }
  }
  const auto h = static_cast<std::int64_t>(s.windows[0].size()), w = static_cast<std::int64_t>(s.windows[1].size());
  constexpr std::int64_t kBack[] = {0, 3, 1, 2};
  p.y = lines ? b.fresh({s.n, w, s.channels}).permuted(kLines) : b.fresh({s.n, h, w, s.channels}).permuted(kBack);
  if (largest && b.training() && b.wants_gradient(p.x)) p.where = b.fresh({2 * s.outputs()}, DType::kUInt8);
  typed(b.dtype(), [&]<typename T>() { emit<T>(b, p, largest); });
  site.bind(p.y);
}

std::int64_t at(const Dims& sizes, std::size_t d) {
  if (sizes.size() != 1 && sizes.size() != 2)
    throw ShapeError("found sizes " + to_text(sizes) + " for a pool, wanted one or two");
  return sizes.size() == 1 ? sizes.front() : sizes[d];
}

Spatial spatial(const LoweringContext& site, std::size_t d) {
  const Dims kernel = site.ints(1), stride = site.ints(2);
  Spatial s{.kernel = at(kernel, d), .padding = at(site.ints(3), d)};
  s.stride = stride.empty() ? s.kernel : at(stride, d);
  return s;
}

// Schema: input, kernel_size, stride, padding, dilation, ceil_mode.
template <bool kIsLines>
void max_pool(LoweringContext& site) {
  const Dims dilation = site.ints(4);
  const Spatial h = spatial(site, 0), w = spatial(site, 1);
  if (h.kernel < 1 || w.kernel < 1 || h.kernel >= kLargest || w.kernel >= kLargest) site.fail("its window is none");
  if (h.kernel * w.kernel > std::numeric_limits<std::uint16_t>::max()) site.fail("its windows are too large");
  pool(site, kIsLines, true, 0, kIsLines ? 1 : at(dilation, 0), at(dilation, 1), [&](std::int64_t in, std::size_t d) {
    Spatial s = d == 0 ? h : w;
    s.dilation = at(dilation, d);
    s.ceil = site.flag(5);
    check(site, s);
    return windows_of(in, s);
  });
}

// Schema: input, kernel_size, stride, padding, ceil_mode, count_include_pad, and of images divisor_override.
template <bool kIsLines>
void avg_pool(LoweringContext& site) {
  const double divisor = kIsLines || site.is_none(6) ? 0 : site.number(6);
  pool(site, kIsLines, false, divisor, 1, 1, [&](std::int64_t in, std::size_t d) {
    Spatial s = spatial(site, d);
    s.ceil = site.flag(4);
    s.count_padding = site.flag(5);
    check(site, s);
    return windows_of(in, s);
  });
}

// Schema: input, output_size.
template <bool kIsLines>
void adaptive_avg_pool(LoweringContext& site) {
  const Dims out = site.ints(1);
  pool(site, kIsLines, false, 0, 1, 1, [&](std::int64_t in, std::size_t d) {
    const std::int64_t wanted = at(out, d);
    if (wanted < 0 || wanted >= kLargest) site.fail("its output size is none");
    return adaptive_windows(in, wanted);
  });
}

}  // namespace

std::vector<NamedCompiler> pool_ops() {
  return {{"aten::max_pool2d", max_pool<false>},
          {"aten::max_pool1d", max_pool<true>},
          {"aten::avg_pool2d", avg_pool<false>},
          {"aten::avg_pool1d", avg_pool<true>},
          {"aten::adaptive_avg_pool2d", adaptive_avg_pool<false>},
          {"aten::adaptive_avg_pool1d", adaptive_avg_pool<true>}};
}

}  // namespace hfta::fusion::cpu
