// Ops of ours that CUDA kernels run, on CPU tensors over fake/cuda_runtime.h: results and gradients are LibTorch's.
#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "fusion/eager/attention.hpp"
#include "fusion/eager/batch_norm.hpp"
#include "fusion/eager/class_losses.hpp"
#include "fusion/eager/embedding.hpp"
#include "fusion/eager/layer_norm.hpp"
#include "fusion/eager/linear.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion {
namespace {

at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).requires_grad_(); }

// How far the two are apart, relative to the second's norm.
double apart(const at::Tensor& found, const at::Tensor& wanted) {
  REQUIRE(found.sizes() == wanted.sizes());
  return (found - wanted).norm().item<double>() / std::max(1e-30, wanted.norm().item<double>());
}

void clear(at::TensorList leaves) {
  for (const at::Tensor& t : leaves) t.mutable_grad().reset();
}

// Gradients of the sum of result times `by`.
std::vector<at::Tensor> gradients(const at::Tensor& result, const at::Tensor& by, at::TensorList leaves) {
  clear(leaves);
  (result * by).sum().backward();
  std::vector<at::Tensor> found;
  for (const at::Tensor& t : leaves) found.push_back(t.grad().clone());
  return found;
}

void compare(const at::Tensor& found, const at::Tensor& wanted, at::TensorList leaves) {
  CHECK(apart(found, wanted) < 1e-14);
  const at::Tensor by = at::randn(wanted.sizes(), at::kDouble);
  const auto ours = gradients(found, by, leaves), theirs = gradients(wanted, by, leaves);
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(apart(ours[i], theirs[i]) < 1e-13);
}

constexpr std::int64_t kSlots = 3, kSamples = 4, kClasses = 37, kIgnored = -100;

// Slot by slot, by LibTorch.
at::Tensor losses_by_slot(const at::Tensor& x, const at::Tensor& targets, const std::vector<double>& smoothing) {
  std::vector<at::Tensor> rows;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    rows.push_back(at::cross_entropy_loss(x.select(0, b), targets.select(0, b), {}, at::Reduction::None, kIgnored,
                                          smoothing[static_cast<std::size_t>(b)]));
  }
  return at::stack(rows);
}

}  // namespace

TEST_CASE("class losses are LibTorch's cross entropy, with its gradient") {
  at::manual_seed(1);
  const std::vector<double> each = {0, 0.1, 0.7}, same = {0.2, 0.2, 0.2};
  const std::vector<double> smoothing = GENERATE_COPY(each, same);
  const bool on_device = GENERATE(false, true), positions = GENERATE(false, true), seen = GENERATE(false, true);
  CAPTURE(smoothing, on_device, positions, seen);
  std::vector<std::int64_t> sizes = {kSlots, kSamples, kClasses}, places = {kSlots, kSamples};
  if (positions) sizes.insert(sizes.end(), {2, 5}), places.insert(places.end(), {2, 5});
  const at::Tensor x = leaf(sizes), targets = at::randint(kClasses, places, at::kLong);
  if (!seen) targets.select(1, 2).fill_(kIgnored);
  const SlotNumbers numbers = on_device ? SlotNumbers(at::tensor(smoothing, at::kDouble)) : SlotNumbers(smoothing);
  const at::Tensor counted = targets.ne(kIgnored).to(at::kDouble);
  const auto wanted = [&] { return losses_by_slot(x, targets, smoothing); };
  compare(class_losses(x, targets, kIgnored, numbers, at::Reduction::None), wanted(), {x});
  compare(class_losses(x, targets, kIgnored, numbers, at::Reduction::Sum), wanted().flatten(1).sum(1), {x});
  compare(class_losses(x, targets, kIgnored, numbers, at::Reduction::Mean),
          wanted().flatten(1).sum(1) / counted.flatten(1).sum(1), {x});
}

TEST_CASE("class losses take logits whose classes lie apart, and samples that slots share") {
  at::manual_seed(2);
  const at::Tensor x = leaf({kSlots, kSamples, 5, kClasses});  // a language model's, classes last
  const at::Tensor targets = at::randint(kClasses, {kSamples, 5}, at::kLong).expand({kSlots, kSamples, 5});
  const SlotNumbers none(std::vector<double>(kSlots, 0));
  compare(class_losses(x.transpose(2, 3), targets, kIgnored, none, at::Reduction::None),
          losses_by_slot(x.transpose(2, 3), targets, {0, 0, 0}), {x});
}

TEST_CASE("a layer norm of slots' own weights is LibTorch's, with its gradients") {
  at::manual_seed(3);
  const bool matrix = GENERATE(false, true), turned = GENERATE(false, true);
  CAPTURE(matrix, turned);
  const std::vector<std::int64_t> shape = matrix ? std::vector<std::int64_t>{3, 11} : std::vector<std::int64_t>{33};
  const auto with = [&](std::vector<std::int64_t> lead) {
    lead.insert(lead.end(), shape.begin(), shape.end());
    return lead;
  };
  const at::Tensor given = turned ? leaf(with({kSamples, kSlots, 2})) : leaf(with({kSlots, kSamples, 2}));
  const at::Tensor x = turned ? given.transpose(0, 1) : given, weight = leaf(with({kSlots})),
                   bias = leaf(with({kSlots}));
  std::vector<at::Tensor> rows;
  for (std::int64_t b = 0; b < kSlots; ++b) {
    rows.push_back(at::layer_norm(x.select(0, b), shape, weight.select(0, b), bias.select(0, b), 1e-5));
  }
  compare(own_layer_norm(x, weight, bias, 33, 1e-5), at::stack(rows), {given, weight, bias});
}

TEST_CASE("a batch norm of slots' own statistics is LibTorch's, with its gradients") {
  at::manual_seed(5);
  constexpr std::int64_t kChannels = 35;
  const std::string layout = GENERATE("rows", "positions", "slots inside", "channels last");
  const bool training = GENERATE(false, true), affine = GENERATE(false, true), relu = GENERATE(false, true);
  CAPTURE(layout, training, affine, relu);
  at::Tensor given, x;
  if (layout == "rows") {
    x = given = leaf({kSlots, 130, kChannels});
  } else if (layout == "positions") {
    given = leaf({kSlots, kSamples, 6, kChannels});
    x = given.transpose(2, 3);
  } else if (layout == "slots inside") {
    given = leaf({130, kSlots, kChannels});
    x = given.transpose(0, 1);
  } else {  // of a grouped convolution
    given = leaf({kSamples, 5, 6, kSlots, kChannels});
    x = given.permute({3, 0, 4, 1, 2});
  }
  at::Tensor weight, bias;
  if (affine) weight = leaf({kSlots, kChannels}), bias = leaf({kSlots, kChannels});
  const at::Tensor mean = at::randn({kSlots, kChannels}, at::kDouble),
                   variance = at::rand({kSlots, kChannels}, at::kDouble) + 0.5;
  const OwnBatchNorm norm{weight, bias, mean.clone(), variance.clone(), training, 0.2, 1e-3, relu};
  REQUIRE(batch_norm_reads(x, norm));
  const at::Tensor means = mean.clone(), variances = variance.clone();
  std::vector<at::Tensor> rows;
  for (std::int64_t b = 0; b < kSlots; ++b) {
    const auto of = [&](const at::Tensor& t) { return t.defined() ? t.select(0, b) : t; };
    const at::Tensor y =
        at::batch_norm(x.select(0, b), of(weight), of(bias), of(means), of(variances), training, 0.2, 1e-3, false);
    rows.push_back(relu ? at::relu(y) : y);
  }
  std::vector<at::Tensor> leaves = {given};
  if (affine) leaves.insert(leaves.end(), {weight, bias});
  const at::Tensor found = own_batch_norm(x, norm);
  CHECK(found.strides() == x.strides());
  compare(found, at::stack(rows), leaves);
  CHECK(apart(norm.running_mean, means) < 1e-14);
  CHECK(apart(norm.running_variance, variances) < 1e-14);
}

TEST_CASE("a batch norm whose numbers lie otherwise, or that cannot move its statistics, is LibTorch's") {
  const at::Tensor planes = at::randn({kSlots, kSamples, 5, 6, 7}), rows = at::randn({kSlots, kSamples, 5});
  const at::Tensor statistics = at::ones({kSlots, 5}), shared = at::ones({5}).expand({kSlots, 5});
  CHECK(batch_norm_reads(rows, {{}, {}, statistics, statistics}));
  CHECK_FALSE(batch_norm_reads(planes, {{}, {}, statistics, statistics}));
  CHECK_FALSE(batch_norm_reads(rows.slice(1, 0, 4, 2), {{}, {}, statistics, statistics}));
  CHECK_FALSE(batch_norm_reads(rows.select(0, 0).expand({kSlots, kSamples, 5}), {{}, {}, statistics, statistics}));
  CHECK_FALSE(batch_norm_reads(rows, {{}, {}, shared, shared}));
  CHECK(batch_norm_reads(rows, {{}, {}, shared, shared, false}));
  CHECK_FALSE(batch_norm_reads(rows, {{}, {}, {}, {}, false}));
  CHECK_FALSE(batch_norm_reads(rows, {{}, {}, statistics.to(at::kDouble), statistics}));
}

TEST_CASE("a linear layer of slots' own weights is LibTorch's, with its gradients") {
  at::manual_seed(6);
  const bool relu = GENERATE(false, true), turned = GENERATE(false, true);
  const std::int64_t rows_of_slot = GENERATE(151, 512);  // in one part, in four
  CAPTURE(relu, turned, rows_of_slot);
  const at::Tensor given = turned ? leaf({rows_of_slot, kSlots, 7}) : leaf({kSlots, rows_of_slot, 7}),
                   weight = leaf({kSlots, 33, 7}), bias = leaf({kSlots, 33}),
                   x = turned ? given.transpose(0, 1) : given;
  const auto by_slot = [&](const at::Tensor& of, const at::Tensor& by) {
    std::vector<at::Tensor> rows;
    for (std::int64_t b = 0; b < kSlots; ++b) {
      const at::Tensor y = at::linear(of.select(0, b), by.select(0, b), bias.select(0, b));
      rows.push_back(relu ? at::relu(y) : y);
    }
    return at::stack(rows);
  };
  compare(own_linear(x, weight, bias, relu), by_slot(x, weight), {given, weight, bias});
  if (!relu) {  // what comes out may be written in place, as LibTorch's may
    compare(own_linear(x, weight, bias, false).mul_(2).sin_(), at::sin(2 * by_slot(x, weight)), {given, weight, bias});
  }
  const at::Tensor fixed = x.detach(), frozen = weight.detach();
  compare(own_linear(fixed, weight, bias, relu), by_slot(fixed, weight), {weight, bias});
  compare(own_linear(x, frozen, bias, relu), by_slot(x, frozen), {given, bias});
}

TEST_CASE("a linear layer with its weight in front is LibTorch's, with its gradients") {
  at::manual_seed(7);
  const bool biased = GENERATE(false, true), turned = GENERATE(false, true);
  const std::int64_t rows = GENERATE(151, 512);
  CAPTURE(biased, turned, rows);
  const at::Tensor given = turned ? leaf({rows, kSlots, 7}) : leaf({kSlots, rows, 7}), weight = leaf({kSlots, 33, 7}),
                   bias = biased ? leaf({kSlots, 33}) : at::Tensor(), x = turned ? given.transpose(0, 1) : given;
  const auto wanted = [&] {
    const at::Tensor product = at::bmm(x, weight.transpose(1, 2));
    return biased ? product + bias.unsqueeze(1) : product;
  };
  std::vector<at::Tensor> leaves = {given, weight};
  if (biased) leaves.push_back(bias);
  const at::Tensor found = own_weight_first_linear(x, weight, bias);
  CHECK(found.transpose(1, 2).is_contiguous());
  compare(found, wanted(), leaves);
  compare(own_weight_first_linear(x, weight, bias).mul_(2).sin_(), at::sin(2 * wanted()), leaves);
  if (biased) compare(own_weight_first_linear(x.detach(), weight.detach(), bias), wanted(), {bias});
}

TEST_CASE("small weights with many rows get their gradients in parts, which are whole and of some length") {
  CHECK(weight_gradient_parts(2048, 64, 64) == 16);
  CHECK(weight_gradient_parts(2048, 3, 64) == 16);
  CHECK(weight_gradient_parts(2048, 128, 64) == 8);
  CHECK(weight_gradient_parts(2048, 65, 129) == 1);    // two of six tiles would not be worth their sum
  CHECK(weight_gradient_parts(2048, 1024, 128) == 1);  // has tiles enough
  CHECK(weight_gradient_parts(512, 64, 64) == 4);
  CHECK(weight_gradient_parts(256, 64, 64) == 1);
  CHECK(weight_gradient_parts(511, 64, 64) == 1);
  CHECK(weight_gradient_parts(4 * 129, 64, 64) == 4);
  CHECK(weight_gradient_parts(1 << 20, 64, 64) == 16);
  CHECK(weight_gradient_parts(0, 64, 64) == 1);
  const at::Tensor dy = at::randn({kSlots, 2048, 5}, at::kDouble), x = at::randn({kSlots, 2048, 9}, at::kDouble);
  CHECK(apart(weight_gradient(dy, x), at::bmm(dy.transpose(1, 2), x)) < 1e-13);
}

TEST_CASE("attention over short sequences is LibTorch's, with its gradients") {
  at::manual_seed(7);
  constexpr std::int64_t kHeads = 2, kLength = 9, kWidth = 5;
  const bool causal = GENERATE(false, true);
  const double scale = GENERATE(0.3, -1.5);
  CAPTURE(causal, scale);
  const auto both = [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::TensorList leaves) {
    REQUIRE(attention_takes(q, k, v));
    const at::Tensor found = own_attention(q, k, v, scale, causal);
    compare(found, at::scaled_dot_product_attention(q, k, v, {}, 0, causal, scale), leaves);
    return found;
  };
  const at::Tensor packed = leaf({kSlots, kSamples, kLength, 3, kHeads, kWidth});  // one projection
  const std::vector<at::Tensor> parts = packed.permute({3, 0, 1, 4, 2, 5}).unbind(0);
  const at::Tensor y = both(parts[0], parts[1], parts[2], {packed});
  CHECK(y.transpose(2, 3).is_contiguous());  // as the layer behind it reads it
  const at::Tensor q = leaf({kSlots, kSamples, kLength, kWidth}), k = leaf({kSlots, kSamples, 4, kWidth}),
                   v = leaf({kSlots, kSamples, 4, 1});
  both(q, k, v, {q, k, v});  // one head
  both(q.detach(), k, v, {k, v});
  both(q, k.detach(), v.detach(), {q});
  const at::Tensor many = leaf({kSlots, kSamples, 2, 2, kLength, kWidth}), turned = leaf({kSamples, kWidth, kLength});
  both(many, many.transpose(2, 3), turned.transpose(1, 2).unsqueeze(1).unsqueeze(1).expand(many.sizes()),
       {many, turned});  // heads in two dimensions, features apart, samples that slots share
}

TEST_CASE("attention of other sizes or types is LibTorch's") {
  const at::Tensor q = at::randn({kSlots, kSamples, 6, 5}), k = at::randn({kSlots, kSamples, 7, 5});
  CHECK(attention_takes(q, k, k));
  CHECK_FALSE(attention_takes(q, k, q));                            // as many values as keys
  CHECK_FALSE(attention_takes(q, k.narrow(-1, 0, 4), k));           // a query's features
  CHECK_FALSE(attention_takes(q, k.narrow(1, 0, 1), k));            // samples
  CHECK_FALSE(attention_takes(q, k.unsqueeze(2), k.unsqueeze(2)));  // heads
  CHECK_FALSE(attention_takes(q, k.to(at::kDouble), k));
  CHECK_FALSE(attention_takes(q.narrow(2, 0, 0), k, k));
  CHECK_FALSE(attention_takes(q.narrow(1, 0, 0), k.narrow(1, 0, 0), k.narrow(1, 0, 0)));
  const at::Tensor longest = at::empty({1, 1, 64, 32}), longer = at::empty({1, 1, 65, 32}),
                   wider = at::empty({1, 1, 64, 33});
  CHECK(attention_takes(longest, longest, longest));
  CHECK_FALSE(attention_takes(longer, longest, longest));
  CHECK_FALSE(attention_takes(longest, longer, longer));
  CHECK_FALSE(attention_takes(wider, wider, longest));
  CHECK_FALSE(attention_takes(longest, longest, wider));
}

TEST_CASE("an embedding from slots' own tables is LibTorch's, with its gradients") {
  at::manual_seed(8);
  const std::int64_t rows = GENERATE(1, 3, 40), padding = GENERATE(-1, 2);
  const std::string indices_of = GENERATE("each slot", "all slots", "no sample", "one sample", "slots inside");
  const at::ScalarType type = GENERATE(at::kLong, at::kInt);
  CAPTURE(rows, padding, indices_of, type);
  at::Tensor indices;
  if (indices_of == "each slot") {
    indices = at::randint(rows, {kSlots, kSamples, 9}, type);
  } else if (indices_of == "all slots") {
    indices = at::randint(rows, {kSamples, 9}, type).expand({kSlots, kSamples, 9});
  } else if (indices_of == "no sample") {
    indices = at::randint(rows, {kSlots, 0, 9}, type);
  } else if (indices_of == "one sample") {
    indices = at::randint(rows, {kSlots}, type);
  } else {
    indices = at::randint(rows, {kSamples, kSlots}, type).transpose(0, 1);
  }
  const at::Tensor given = leaf({rows, kSlots, 35}), tables = given.transpose(0, 1);
  const auto by_slot = [&] {
    std::vector<at::Tensor> all;
    for (std::int64_t b = 0; b < kSlots; ++b) {
      all.push_back(at::embedding(tables.select(0, b), indices.select(0, b), padding));
    }
    return at::stack(all);
  };
  compare(own_embedding(tables, indices, padding), by_slot(), {given});
  // What comes out may be written in place, as LibTorch's may.
  compare(own_embedding(tables, indices, padding).mul_(2).sin_(), at::sin(2 * by_slot()), {given});
}

TEST_CASE("an embedding of few positions suits any table, of more only a small one, of many none") {
  CHECK(own_embedding_suits(512, 1000, 64));
  CHECK(own_embedding_suits(1024, 1 << 20, 4096));
  CHECK(own_embedding_suits(0, 0, 0));
  CHECK(own_embedding_suits(8192, 1000, 128));
  CHECK_FALSE(own_embedding_suits(8192, 50000, 128));
  CHECK_FALSE(own_embedding_suits(8193, 2, 2));
}

TEST_CASE("a layer norm without weights, or with frozen ones, gives the gradient that is wanted") {
  at::manual_seed(4);
  const at::Tensor x = leaf({kSlots, kSamples, 20}), frozen = at::randn({20}, at::kDouble);
  compare(own_layer_norm(x, {}, {}, 20, 1e-5), at::layer_norm(x, {20}, {}, {}, 1e-5), {x});
  const at::Tensor shared = frozen.expand({kSlots, 20}), bias = leaf({kSlots, 20});
  compare(own_layer_norm(x, shared, bias, 20, 1e-5), at::layer_norm(x, {20}, frozen, {}, 1e-5) + bias.unsqueeze(1),
          {x, bias});
  const at::Tensor fixed = x.detach();
  compare(own_layer_norm(fixed, shared, bias, 20, 1e-5),
          at::layer_norm(fixed, {20}, frozen, {}, 1e-5) + bias.unsqueeze(1), {bias});
}

}  // namespace hfta::fusion
