// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] -> [N, O, H', W'], channels last in memory.
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "fusion/cpu/kernels/conv_pass.hpp"
#include "fusion/cpu/kernels/output_sums.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

constexpr std::int64_t kImages[] = {0, 2, 3, 1}, kLines[] = {0, 2, 1};
constexpr std::int64_t kLargest = std::int64_t{1} << 20;  // stride, padding, ...: their products stay numbers

// `shape` is that of the convolution which a transposed one undoes: from y to x.
struct Conv {
  Tensor x, weight, bias, y, signs;  // signs: of y, where its relu does not read y itself
  bool relu = false, transposed = false;
  ConvShape shape;

  [[nodiscard]] std::int64_t channels() const { return transposed ? shape.c : shape.o; }  // of y
  [[nodiscard]] std::int64_t pixels() const {                                             // of an image of y
    return transposed ? shape.in[0] * shape.in[1] : shape.out[0] * shape.out[1];
  }
};

// Whether `to`, which is made of `from`, may take its place: an image of it is made of that image alone, which is
// copied first.
template <typename T>
bool in_place(const Tensor& from, const Tensor& to, const DataPass<T>& product) {
  const bool alike = from.sizes == to.sizes && from.strides == to.strides && from.offset == 0 && to.offset == 0;
  return alike && product.copies_source();
}

template <typename T>
Kernel forward_kernel(const Conv& c, const std::shared_ptr<const DataPass<T>>& product, const Tensor& scratch) {
  const std::int64_t n = c.shape.n, step = images_at_once(c.shape);
  return [=](const Run& run) {
    for (std::int64_t i = 0; i < n; i += step) {
      (*product)({.team = run.team,
                  .first = i,
                  .images = std::min(step, n - i),
                  .source = run.at<T>(c.x),
                  .weight = run.at<T>(c.weight),
                  .result = run.at<T>(c.y),
                  .scratch = run.at<T>(scratch),
                  .bias = c.bias.defined() ? run.at<T>(c.bias) : nullptr,
                  .relu = c.relu});
    }
  };
}

template <typename T>
void forward(Builder& b, const Conv& c) {
  const std::shared_ptr<const DataPass<T>> product = data_pass<T>(c.shape, c.transposed, false);
  const Tensor scratch = b.fresh({product->scratch(b.threads())}), again = b.fresh({product->scratch(b.threads())});
  b.emit({c.x, c.weight, c.bias, c.y, scratch}, forward_kernel<T>(c, product, scratch));
  b.names_algorithm(product->name());
  if (in_place(c.x, c.y, *product)) b.writes_in_place(c.x, c.y);
  b.recomputable(c.y, {c.x, c.weight, c.bias, c.y, again}, forward_kernel<T>(c, product, again),
                 RecomputeCost::kProduct);
}

// What emit_output_sums() does, of a convolution.
void emit_conv_sums(Builder& b, const Conv& c, const Tensor& dy) {
  const auto place = b.bounded(c.weight);
  if (!place) return;
  const Tensor scratch = b.fresh({2 * c.shape.o}, DType::kFloat64);
  b.emit({dy, scratch}, [=, shape = c.shape, place = *place](const Run& run) {
    if (const auto sums = run.coding->sums(place)) sum_output(shape, run.at<float>(dy), run.at<double>(scratch), *sums);
  });
}

// What the backward works with.
template <typename T>
struct Gradients {
  Conv c;
  Tensor dy, sums_scratch, scratch;
  Builder::Part db, dw, dx;                    // undefined tensors: nobody wants them
  std::shared_ptr<const WeightPass<T>> sums;   // of dw
  std::shared_ptr<const DataPass<T>> product;  // to dx
  bool masks = false;

  [[nodiscard]] std::int64_t x_image() const { return c.x.numel() / c.shape.n; }  // elements
  [[nodiscard]] std::string algorithm() const {
    const std::string weight = sums != nullptr ? sums->name() : "", x = product != nullptr ? product->name() : weight;
    return weight.empty() || weight == x ? x : "weight " + weight + ", input " + x;
  }
};

// All of an image's gradients at once, while it is in the cache. `images_of_x`: x of `images` images from the `first`
// on; called if dw is wanted.
template <typename T, typename ImagesOfX>
void run_backward(const Gradients<T>& g, const Run& run, const ImagesOfX& images_of_x) {
  const Conv& c = g.c;
  const std::int64_t n = c.shape.n, step = images_at_once(c.shape), channels = c.channels(), pixels = c.pixels();
  T* const dy = run.at<T>(g.dy);
  for (std::int64_t i = 0; i < n; i += step) {
    const std::int64_t images = std::min(step, n - i), at = i * pixels * channels;
    if (g.db.tensor.defined() || g.masks) {
      mask_and_sum(run.team, dy + at, g.masks ? run.at<T>(c.y) + at : nullptr, channels, images * pixels, channels,
                   g.db.tensor.defined() ? run.at<T>(g.db.tensor) : nullptr, g.db.add || i > 0);
    }
    if (g.sums != nullptr) {
      const T* const x = images_of_x(i, images);
      (*g.sums)({.team = run.team,
                 .first = i,
                 .images = images,
                 .x = c.transposed ? dy + at : x,
                 .dy = c.transposed ? x : dy + at,
                 .dweight = run.at<T>(g.dw.tensor),
                 .scratch = run.at<T>(g.sums_scratch)});
    }
    if (g.product != nullptr) {
      (*g.product)({.team = run.team,
                    .first = i,
                    .images = images,
                    .source = dy,
                    .weight = run.at<T>(c.weight),
                    .result = run.at<T>(g.dx.tensor),
                    .scratch = run.at<T>(g.scratch)});
    }
  }
}

// The backward where x lies encoded: some images are decoded at a time.
Builder::Pieces by_images(Builder& b, const Gradients<float>& g, std::vector<Tensor> touched) {
  const std::int64_t image = g.x_image(), piece = images_at_once(g.c.shape) * image;
  const Tensor memory = b.fresh({piece});
  touched.front() = memory;
  return {piece, std::move(touched), [=](std::size_t i) -> Kernel {
            return [=](const Run& run) {
              run_backward<float>(g, run, [&](std::int64_t first, std::int64_t images) {
                auto* const x = run.at<float>(memory);
                run.coding->decode(i, first * image, images * image, x, run.team);
                return x;
              });
            };
          }};
}

template <typename T>
void emit_backward(Builder& b, const Gradients<T>& g, bool bounded) {
  const Conv& c = g.c;
  const std::vector<Tensor> touched = {g.sums != nullptr ? c.x : Tensor{},
                                       c.weight,
                                       g.masks ? c.y : Tensor{},
                                       g.dy,
                                       g.db.tensor,
                                       g.dw.tensor,
                                       g.dx.tensor,
                                       g.sums_scratch,
                                       g.scratch};
  b.emit(touched, [=](const Run& run) {
    run_backward<T>(g, run, [&](std::int64_t first, std::int64_t) { return run.at<T>(g.c.x) + first * g.x_image(); });
  });
  b.names_algorithm(g.algorithm());
  if constexpr (std::is_same_v<T, float>) {
    if (b.bounded(c.weight) && bounded)
      b.reads_for_gradient(c.x, c.weight, c.shape.c, c.shape.groups, by_images(b, g, touched));
  }
}

template <typename T>
void backward(Builder& b, const Conv& c) {
  const auto given = b.gradient(c.y);
  if (!given) return;
  const bool wants_weight = b.wants_gradient(c.weight), wants_x = b.wants_gradient(c.x);
  const bool replaces = wants_x && b.encodes() && !b.has_gradient(c.x) &&
                        in_place(*given, c.x, *data_pass<T>(c.shape, !c.transposed, false));
  Gradients<T> g;
  g.c = c;
  g.dy = *given;
  g.masks = c.relu && !c.signs.defined();
  g.db = b.contribute_if_wanted(c.bias);
  g.dw = b.contribute_if_wanted(c.weight);
  g.dx = replaces ? Builder::Part{*given, false} : b.contribute_if_wanted(c.x);
  if (wants_weight) {
    g.sums = weight_pass<T>(c.shape, g.dw.add);
    g.sums_scratch = b.fresh({g.sums->scratch(b.threads())});
  }
  if (wants_x) {
    g.product = data_pass<T>(c.shape, !c.transposed, g.dx.add);
    g.scratch = b.fresh({g.product->scratch(b.threads())});
  }
  const bool bounded = wants_weight && !c.transposed;
  if (c.signs.defined()) emit_mask(b, *given, c.signs);
  if (bounded) emit_conv_sums(b, c, *given);
  emit_backward<T>(b, g, bounded);
  if (replaces) b.hand_over_gradient(c.y, c.x);
}

template <typename T>
void emit(Builder& b, Conv c) {
  forward<T>(b, c);
  if (c.relu) c.signs = kept_signs(b, c.y);
  b.differentiable({c.x, c.weight, c.bias}, {c.y}, [&b, c] { backward<T>(b, c); });
}

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
  typed(b.dtype(), [&]<typename T>() { emit<T>(b, c); });
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

// That kernels can be made for: `channels` of x, and of y as the weight has them.
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
  if (const auto* how = std::get_if<std::string>(&site.node().args.at(4))) {
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
