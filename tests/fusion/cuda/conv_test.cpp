// Convolutions as products of columns, on CPU tensors over fake/cuda_runtime.h: results and gradients are LibTorch's,
// slot by slot.
#include "fusion/eager/conv.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "fusion/eager/layout.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kSlots = 3;

at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).requires_grad_(); }

at::Tensor by_slot(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ConvWindows& by) {
  std::vector<at::Tensor> rows;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    rows.push_back(at::convolution(x.select(0, b), weight.select(0, b), bias.defined() ? bias.select(0, b) : bias,
                                   by.stride, by.padding, by.dilation, false, {0, 0}, 1));
  }
  return at::stack(rows);
}

double apart(const at::Tensor& found, const at::Tensor& wanted) {
  REQUIRE(found.sizes() == wanted.sizes());
  return (found - wanted).norm().item<double>() / std::max(1e-30, wanted.norm().item<double>());
}

std::vector<at::Tensor> gradients(const at::Tensor& y, const at::Tensor& dy, const std::vector<at::Tensor>& leaves) {
  for (const at::Tensor& t : leaves) t.mutable_grad().reset();
  y.backward(dy);
  std::vector<at::Tensor> all;
  for (const at::Tensor& t : leaves) all.push_back(t.grad().clone());
  return all;
}

// [c, N, O, OH, OW] for [c, O, N, OH, OW] in memory.
bool is_in_order(const at::Tensor& y) { return y.transpose(1, 2).is_contiguous(); }

// With a gradient in the result's own order, and in another.
void compare(const at::Tensor& found, const at::Tensor& wanted, const std::vector<at::Tensor>& leaves) {
  CHECK(is_in_order(found));
  CHECK(apart(found, wanted) < 1e-14);
  const at::Tensor dy = at::randn(wanted.sizes(), at::kDouble);
  for (const at::Tensor& by : {dy, dy.transpose(1, 2).contiguous().transpose(1, 2), dy.sum().expand(dy.sizes())}) {
    const auto once = [&](const at::Tensor& y) {
      for (const at::Tensor& t : leaves) t.mutable_grad().reset();
      y.backward(by, true);
      std::vector<at::Tensor> all;
      for (const at::Tensor& t : leaves) all.push_back(t.grad().clone());
      return all;
    };
    const auto ours = once(found), theirs = once(wanted);
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(apart(ours[i], theirs[i]) < 1e-13);
  }
}

struct Case {
  std::int64_t images, channels, h, w, outputs, kernel_h, kernel_w;
  ConvWindows by;
};
const ConvWindows kPlain{{1, 1}, {0, 0}, {1, 1}}, kPadded{{1, 1}, {1, 1}, {1, 1}};

std::vector<Case> cases() {
  return {{4, 2, 7, 9, 5, 3, 3, kPadded},
          {6, 2, 10, 9, 5, 3, 3, kPadded},  // the weights' gradient in parts
          {5, 3, 8, 7, 4, 3, 2, {{2, 1}, {1, 0}, {1, 2}}},
          {4, 6, 5, 6, 3, 1, 1, kPlain},
          {6, 6, 10, 9, 3, 1, 1, kPlain},
          {3, 2, 9, 9, 3, 1, 1, {{2, 2}, {0, 0}, {1, 1}}},
          {2, 1, 5, 4, 2, 5, 4, kPlain}};
}

// [c, N, C, H, W] and what it is a view of: standard, as own_conv2d() gives it, [N, c, C, H, W], channels last.
std::pair<at::Tensor, at::Tensor> images(const Case& of, int layout) {
  const std::int64_t n = of.images, k = of.channels, h = of.h, w = of.w;
  at::Tensor given;
  if (layout == 0) return {given = leaf({kSlots, n, k, h, w}), given};
  if (layout == 1) return {given = leaf({kSlots, k, n, h, w}), given.transpose(1, 2)};
  if (layout == 2) return {given = leaf({n, kSlots, k, h, w}), given.transpose(0, 1)};
  given = leaf({n, h, w, kSlots, k});
  return {given, given.permute({3, 0, 4, 1, 2})};
}

}  // namespace

TEST_CASE("a convolution by columns is LibTorch's, with its gradients") {
  at::manual_seed(1);
  const Case of = GENERATE(from_range(cases()));
  const int layout = GENERATE(0, 1, 2, 3);
  const bool with_bias = GENERATE(false, true);
  CAPTURE(of.images, of.h, of.kernel_h, layout, with_bias);
  const auto [given, x] = images(of, layout);
  const at::Tensor weight = leaf({kSlots, of.outputs, of.channels, of.kernel_h, of.kernel_w}),
                   bias = with_bias ? leaf({kSlots, of.outputs}) : at::Tensor();
  std::vector<at::Tensor> leaves = {given, weight};
  if (with_bias) leaves.push_back(bias);
  compare(own_conv2d(x, weight, bias, of.by), by_slot(x, weight, bias, of.by), leaves);
}

TEST_CASE("a convolution by columns whose columns are many is done in pieces") {
  at::manual_seed(2);
  const Case of = cases()[GENERATE(0, 1, 2)];
  const std::int64_t of_image = of.channels * of.kernel_h * of.kernel_w * of.h * of.w;
  const std::int64_t most = GENERATE_COPY(1, 3 * of_image, 2 * of.images * of_image);
  CAPTURE(of.images, most);
  const at::Tensor x = leaf({kSlots, of.images, of.channels, of.h, of.w}),
                   weight = leaf({kSlots, of.outputs, of.channels, of.kernel_h, of.kernel_w}),
                   bias = leaf({kSlots, of.outputs});
  compare(own_conv2d(x, weight, bias, of.by, most), by_slot(x, weight, bias, of.by), {x, weight, bias});
  const at::Tensor shared = x.detach()[0].expand(x.sizes());
  compare(own_conv2d(shared, weight, bias, of.by, most), by_slot(shared, weight, bias, of.by), {weight, bias});
}

TEST_CASE("images that slots share get columns once, and a gradient if they need one") {
  at::manual_seed(3);
  const Case of = GENERATE(from_range(cases()));
  const bool needs_gradient = GENERATE(false, true), turned = GENERATE(false, true);
  CAPTURE(of.images, of.h, of.kernel_h, needs_gradient, turned);
  at::Tensor one = at::randn({of.images, of.channels, of.h, of.w}, at::kDouble);
  if (turned) one = one.transpose(0, 1).contiguous().transpose(0, 1);
  one.requires_grad_(needs_gradient);
  const at::Tensor x = with_slots(one, kSlots);
  const at::Tensor weight = leaf({kSlots, of.outputs, of.channels, of.kernel_h, of.kernel_w}),
                   bias = leaf({kSlots, of.outputs});
  std::vector<at::Tensor> leaves = {weight, bias};
  if (needs_gradient) leaves.push_back(one);
  compare(own_conv2d(x, weight, bias, of.by), by_slot(x, weight, bias, of.by), leaves);
}

TEST_CASE("a convolution by columns gives the gradients that are wanted") {
  at::manual_seed(4);
  const Case of = cases()[GENERATE(0, 3)];
  const at::Tensor x = leaf({kSlots, of.images, of.channels, of.h, of.w}), fixed = x.detach(),
                   weight = leaf({kSlots, of.outputs, of.channels, of.kernel_h, of.kernel_w}), frozen = weight.detach(),
                   bias = leaf({kSlots, of.outputs}), still = bias.detach();
  const auto check = [&](const at::Tensor& in, const at::Tensor& by, const at::Tensor& plus,
                         const std::vector<at::Tensor>& leaves) {
    compare(own_conv2d(in, by, plus, of.by), by_slot(in, by, plus, of.by), leaves);
  };
  check(fixed, weight, bias, {weight, bias});
  check(x, frozen, bias, {x, bias});
  check(x, weight, still, {x, weight});
  check(fixed, frozen, bias, {bias});
  const at::Tensor shared = frozen[0].expand(weight.sizes());  // an adapter's base
  check(x, shared, still, {x});
}

TEST_CASE("what a convolution by columns gives may be written in place, as LibTorch's may") {
  at::manual_seed(5);
  const at::Tensor x = leaf({kSlots, 2, 3, 5, 6}), weight = leaf({kSlots, 4, 3, 3, 3}), bias = leaf({kSlots, 4});
  compare(own_conv2d(x, weight, bias, kPadded).mul_(2).sin_(), at::sin(2 * by_slot(x, weight, bias, kPadded)),
          {x, weight, bias});
}

TEST_CASE("a slot's NaN stays in it, through a convolution by columns and back") {
  at::manual_seed(6);
  const Case of = cases()[GENERATE(1, 4)];
  const bool shared = GENERATE(false, true);
  CAPTURE(of.kernel_h, shared);
  const at::Tensor x =
      shared ? at::randn({1, of.images, of.channels, of.h, of.w}, at::kDouble).expand({kSlots, -1, -1, -1, -1})
             : leaf({kSlots, of.images, of.channels, of.h, of.w});
  const at::Tensor weight = leaf({kSlots, of.outputs, of.channels, of.kernel_h, of.kernel_w}),
                   bias = leaf({kSlots, of.outputs});
  std::vector<at::Tensor> leaves = {weight, bias};
  if (!shared) leaves.push_back(x);
  const at::Tensor clean = own_conv2d(x, weight, bias, of.by);
  const auto clean_gradients = gradients(clean, at::ones_like(clean), leaves);
  {
    const at::NoGradGuard no_gradients;
    weight[1].fill_(std::nan(""));
    bias[1].fill_(std::nan(""));
    if (!shared) x[1].fill_(std::nan(""));
  }
  const at::Tensor found = own_conv2d(x, weight, bias, of.by);
  at::Tensor dy = at::ones_like(found);
  dy[1].fill_(std::nan(""));
  const auto found_gradients = gradients(found, dy, leaves);
  CHECK(found[1].isnan().all().item<bool>());
  for (const int b : {0, 2}) {
    CHECK(found[b].equal(clean[b]));
    for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(found_gradients[i][b].equal(clean_gradients[i][b]));
  }
  for (const at::Tensor& t : found_gradients) CHECK(t[1].isnan().all().item<bool>());
}

TEST_CASE("a kernel larger than its padded images is an error") {
  const at::Tensor x = at::randn({kSlots, 2, 3, 4, 4}, at::kDouble),
                   weight = at::randn({kSlots, 2, 3, 5, 5}, at::kDouble);
  CHECK_THROWS_WITH(own_conv2d(x, weight, {}, kPlain), Catch::Contains("larger than its padded images"));
}

TEST_CASE("planes stay where they lie in memory") {
  const std::vector<std::int64_t> order =
      GENERATE(std::vector<std::int64_t>{0, 1, 2}, std::vector<std::int64_t>{0, 2, 1},
               std::vector<std::int64_t>{1, 0, 2}, std::vector<std::int64_t>{2, 0, 1});
  const std::vector<std::int64_t> sizes = {kSlots, 4, 5};
  std::vector<std::int64_t> in_memory, back(5);
  for (const std::int64_t d : order) in_memory.push_back(sizes[static_cast<std::size_t>(d)]);
  for (std::size_t d = 0; d < 3; ++d) back[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  in_memory.insert(in_memory.end(), {6, 8});
  back[3] = 3, back[4] = 4;
  const at::Tensor memory = at::randn(in_memory), x = memory.permute(back);
  const MergedPlanes planes = planes_in_memory_order(x, 2);
  CHECK(planes.merged.dim() == 4);
  CHECK(planes.merged.data_ptr() == memory.data_ptr());  // nothing was copied
  CHECK(planes.restore(planes.merged).equal(x));
  const at::Tensor pooled = planes.restore(at::max_pool2d(planes.merged, {2, 2}));
  CHECK(pooled.equal(at::max_pool2d(x.flatten(0, 1), {2, 2}).unflatten(0, {kSlots, 4})));
  CHECK(pooled.permute({order[0], order[1], order[2], 3, 4}).is_contiguous());
}

TEST_CASE("planes with room between them, or shared, are as a batch of all slots") {
  const at::Tensor wide = at::randn({kSlots, 4, 5, 6, 9}), one = at::randn({4, 5, 6, 8});
  for (const at::Tensor& x : {wide.slice(4, 0, 8), with_slots(one, kSlots), wide.permute({0, 1, 4, 2, 3})}) {
    const MergedPlanes planes = planes_in_memory_order(x, 2);
    CHECK(planes.merged.equal(x.flatten(0, 1)));
    CHECK(planes.restore(planes.merged).equal(x));
  }
  const at::Tensor two = at::randn({kSlots, 4, 6}), turned = at::randn({4, kSlots, 6}).transpose(0, 1);
  for (const at::Tensor& x : {two, turned}) {
    const MergedPlanes planes = planes_in_memory_order(x, 1);
    CHECK(planes.merged.dim() == 2);
    CHECK(planes.restore(planes.merged).equal(x));
  }
}

}  // namespace hfta::fusion
