// Losses of slots side by side: element by element on [c, N, ...], then reduced within each slot.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/class_losses.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

// [c, ...] with ones behind the slots up to `dims` dimensions, so that it broadcasts as it does for one slot.
at::Tensor with_dims(const at::Tensor& t, std::int64_t dims) {
  if (!t.defined() || t.dim() >= dims) return t;
  std::vector<std::int64_t> sizes = t.sizes().vec();
  sizes.insert(sizes.begin() + 1, static_cast<std::size_t>(dims - t.dim()), 1);
  return t.reshape(sizes);
}

// `each`: [c, ...]. Wide: one number per slot, or every element.
std::vector<at::Tensor> reduced(const at::Tensor& each, std::int64_t reduction) {
  if (reduction == at::Reduction::None) return {each};
  const at::Tensor rows = each.flatten(1);
  return {reduction == at::Reduction::Mean ? rows.mean(1) : rows.sum(1)};
}

// Arguments 0 and 1 with equally many dimensions, and the largest number of them.
struct Pair {
  explicit Pair(const OpCall& call) : y(call.tensor(0)), t(call.tensor(1)), dims(std::max(y.dim(), t.dim())) {
    y = with_dims(y, dims);
    t = with_dims(t, dims);
  }
  at::Tensor y, t;
  std::int64_t dims;
};

// `numbers` beside tensors of `dims` dimensions.
at::Tensor beside(const SlotNumbers& numbers, const at::Tensor& like, std::int64_t dims) {
  return with_dims(numbers.as(like.options()), dims);
}

using Elementwise = at::Tensor (*)(const at::Tensor&, const at::Tensor&, std::int64_t);

// Schema: self, target, reduction.
template <Elementwise kLoss>
std::vector<at::Tensor> plain(const OpCall& call) {
  const Pair pair(call);
  return reduced(kLoss(pair.y, pair.t, at::Reduction::None), call.integer(2));
}

// The two tensors, [c, ...], and one number per slot. Schema: self, target, reduction, number.
struct NumberedLoss {
  at::Tensor y, t;
  std::int64_t dims;
  SlotNumbers numbers;
};

at::Tensor huber(const NumberedLoss& call) {
  const at::Tensor d = (call.y - call.t).abs(), delta = beside(call.numbers, d, call.dims);
  return at::where(d.le(delta), 0.5 * d * d, delta * (d - 0.5 * delta));
}

at::Tensor smooth_l1(const NumberedLoss& call) {
  const at::Tensor d = (call.y - call.t).abs(), beta = beside(call.numbers, d, call.dims);
  // A slot whose beta is 0 must not see a division by it, not even in a gradient.
  const at::Tensor divisor = at::where(beta.gt(0), beta, 1.0);
  return at::where(d.lt(beta), 0.5 * d * d / divisor, d - 0.5 * beta);
}

using Formula = at::Tensor (*)(const NumberedLoss&);
using NumberedOp = at::Tensor (*)(const at::Tensor&, const at::Tensor&, std::int64_t, double);

// Runs the op where all slots have one number, else its formula.
template <Formula kFormula, NumberedOp kOp>
std::vector<at::Tensor> numbered(const OpCall& call) {
  const Pair pair(call);
  const SlotNumbers numbers = call.per_slot(3);
  const at::Tensor each = numbers.is_one() ? kOp(pair.y, pair.t, at::Reduction::None, numbers.known().front())
                                           : kFormula({pair.y, pair.t, pair.dims, numbers});
  return reduced(each, call.integer(2));
}

template <Formula kFormula, NumberedOp kOp>
std::vector<at::Tensor> numbered_alone(const OpCall& call) {
  const SlotNumbers numbers = call.per_slot(3);
  if (numbers.is_known()) return {kOp(call.tensor(0), call.tensor(1), call.integer(2), numbers.known().at(0))};
  const at::Tensor y = call.tensor(0).unsqueeze(0), t = call.tensor(1).unsqueeze(0);
  return {reduced(kFormula({y, t, y.dim(), numbers}), call.integer(2)).front().squeeze(0)};
}

std::optional<at::Tensor> given(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

// The loss is NaN where `y` is no probability. LibTorch throws instead: one slot that diverged would end them all.
at::Tensor tolerant_cross_entropy(const at::Tensor& y, const at::Tensor& t, const at::Tensor& weight) {
  const at::Tensor known = y.ge(0).logical_and(y.le(1));
  const at::Tensor each = at::binary_cross_entropy(at::where(known, y, 0.5), t, given(weight), at::Reduction::None);
  return at::where(known, each, std::numeric_limits<double>::quiet_NaN());
}

// Schema: self, target, weight, reduction.
std::vector<at::Tensor> binary_cross_entropy(const OpCall& call) {
  const Pair pair(call);
  return reduced(tolerant_cross_entropy(pair.y, pair.t, with_dims(call.tensor(2), pair.dims)), call.integer(3));
}

std::vector<at::Tensor> binary_cross_entropy_alone(const OpCall& call) {
  const at::Tensor each = tolerant_cross_entropy(call.tensor(0), call.tensor(1), call.tensor(2));
  const std::int64_t reduction = call.integer(3);
  return {reduction == at::Reduction::None ? each : reduction == at::Reduction::Mean ? each.mean() : each.sum()};
}

// Schema: self, target, weight, pos_weight, reduction.
std::vector<at::Tensor> binary_cross_entropy_with_logits(const OpCall& call) {
  const Pair pair(call);
  const at::Tensor weight = with_dims(call.tensor(2), pair.dims), positive = with_dims(call.tensor(3), pair.dims);
  return reduced(at::binary_cross_entropy_with_logits(pair.y, pair.t, weight, positive, at::Reduction::None),
                 call.integer(4));
}

// Schema: self, target, reduction, log_target.
std::vector<at::Tensor> kl_div(const OpCall& call) {
  const Pair pair(call);
  return reduced(at::kl_div(pair.y, pair.t, at::Reduction::None, call.flag(3)), call.integer(2));
}

// Schema: input, target, log_input, full, eps, reduction.
std::vector<at::Tensor> poisson_nll(const OpCall& call) {
  const Pair pair(call);
  return reduced(at::poisson_nll_loss(pair.y, pair.t, call.flag(2), call.flag(3), call.number(4), at::Reduction::None),
                 call.integer(5));
}

// ---- Classes: input [c, N, C, ...], targets [c, N, ...] or, as probabilities, of the input's sizes ----

// Class weights that stand beside [c, N, C, ...].
at::Tensor class_weight(const at::Tensor& weight, std::int64_t dims) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dims), 1);
  sizes[0] = weight.size(0);
  sizes[2] = weight.size(1);
  return weight.reshape(sizes);
}

// The loss of every position, 0 where it is ignored; and the weight that it has in the mean.
struct Positions {
  at::Tensor loss, weight;
};

// -x at the classes, with their weights.
Positions chosen(const at::Tensor& x, const at::Tensor& target, const at::Tensor& weight, std::int64_t ignored) {
  const at::Tensor counted = target.ne(ignored), index = target.masked_fill(counted.logical_not(), 0).unsqueeze(2);
  at::Tensor own = counted.to(x.scalar_type());
  if (weight.defined()) own = own * class_weight(weight, x.dim()).expand_as(x).gather(2, index).squeeze(2);
  const at::Tensor loss = -x.gather(2, index).squeeze(2);
  // Losses that are ignored may be infinite.
  return {at::where(counted, loss, 0.0) * own, own};
}

std::vector<at::Tensor> reduced(const Positions& all, std::int64_t reduction) {
  if (reduction != at::Reduction::Mean) return reduced(all.loss, reduction);
  return {all.loss.flatten(1).sum(1) / all.weight.flatten(1).sum(1)};
}

// The mean over classes that label smoothing mixes in: a sum over classes of -w log p.
at::Tensor over_classes(const at::Tensor& log_p, const at::Tensor& weight) {
  return -(weight.defined() ? log_p * class_weight(weight, log_p.dim()) : log_p).sum(2);
}

struct CrossEntropy {
  at::Tensor x, target, weight;  // [c, N, C, ...]; weight [c, C] or undefined
  std::int64_t reduction, ignored;
  SlotNumbers smoothing;
};

std::vector<at::Tensor> of_probabilities(const CrossEntropy& call) {
  const auto classes = static_cast<double>(call.x.size(2));
  const at::Tensor e = beside(call.smoothing, call.x, call.x.dim());
  const at::Tensor target = call.target * (1 - e) + e / classes;
  const at::Tensor each = over_classes(at::log_softmax(call.x, 2) * target, call.weight);
  // PyTorch divides by the number of positions, also with weights.
  return reduced(each, call.reduction);
}

// PyTorch: (1 - e) w[y] (-log p[y]) + e / C times the sum over classes of -w log p.
std::vector<at::Tensor> of_classes(const CrossEntropy& call) {
  if (kernels_take(call.x) && !call.weight.defined()) {
    return {class_losses(call.x, call.target, call.ignored, call.smoothing, call.reduction)};
  }
  const at::Tensor log_p = at::log_softmax(call.x, 2);
  Positions all = chosen(log_p, call.target, call.weight, call.ignored);
  if (!call.smoothing.all([](double e) { return e == 0; })) {
    const at::Tensor e = beside(call.smoothing, call.x, call.target.dim());
    const at::Tensor others = at::where(call.target.ne(call.ignored), over_classes(log_p, call.weight), 0.0);
    // A slot without smoothing must not see the other classes, whose log p may be infinite.
    const at::Tensor mixed = at::where(e.gt(0), e / static_cast<double>(call.x.size(2)) * others, 0.0);
    all.loss = (1 - e) * all.loss + mixed;
  }
  return reduced(all, call.reduction);
}

// Schema: self, target, weight, reduction, ignore_index, label_smoothing.
CrossEntropy cross_entropy_of(const OpCall& call) {
  return {as_normalised(call.tensor(0)),
          call.tensor(1),
          call.tensor(2),
          call.integer(3),
          call.integer(4),
          call.per_slot(5)};
}

std::vector<at::Tensor> cross_entropy(const CrossEntropy& call) {
  return call.target.is_floating_point() ? of_probabilities(call) : of_classes(call);
}

// Adds a batch dimension to a single sample, [c, C].
std::vector<at::Tensor> cross_entropy_wide(const OpCall& given) {
  CrossEntropy call = cross_entropy_of(given);
  if (call.x.dim() > 2) return cross_entropy(call);
  call.x = call.x.unsqueeze(1);
  call.target = call.target.unsqueeze(1);
  const at::Tensor loss = cross_entropy(call).front();
  return {loss.dim() > 1 ? loss.squeeze(1) : loss};
}

// One slot runs PyTorch's own op, unless its numbers lie on the device, or there are kernels of ours. That op waits for
// the device if it has weights and smoothing, so that it could not be captured, and adds up positions in no fixed order
// on a GPU.
std::vector<at::Tensor> cross_entropy_alone(const OpCall& call) {
  CrossEntropy one = cross_entropy_of(call);
  const bool waits = one.weight.defined() && !one.smoothing.all([](double e) { return e == 0; });
  const bool unordered = one.x.is_cuda() && one.x.dim() > 2;
  const bool by_kernel = kernels_take(one.x) && !one.weight.defined() && !one.target.is_floating_point();
  if (one.smoothing.is_known() && !waits && !unordered && !by_kernel) {
    return {at::cross_entropy_loss(one.x, one.target, given(one.weight), one.reduction, one.ignored,
                                   one.smoothing.known().at(0))};
  }
  for (at::Tensor* tensor : {&one.x, &one.target, &one.weight}) {
    if (tensor->defined()) *tensor = tensor->unsqueeze(0);
  }
  const bool batched = one.x.dim() > 2;
  if (!batched) one.x = one.x.unsqueeze(1), one.target = one.target.unsqueeze(1);
  const at::Tensor loss = cross_entropy(one).front().squeeze(0);
  return {batched || loss.dim() == 0 ? loss : loss.squeeze(0)};
}

// Schema: self, target, weight, reduction, ignore_index.
std::vector<at::Tensor> nll(const OpCall& call) {
  at::Tensor x = as_normalised(call.tensor(0)), target = call.tensor(1);
  const bool batched = x.dim() > 2;
  if (!batched) x = x.unsqueeze(1), target = target.unsqueeze(1);
  const at::Tensor loss = reduced(chosen(x, target, call.tensor(2), call.integer(4)), call.integer(3)).front();
  return {batched || loss.dim() == 1 ? loss : loss.squeeze(1)};
}

}  // namespace

std::vector<BatchingRule> loss_rules() {
  using Run = std::vector<at::Tensor> (*)(const OpCall&);
  const auto rule = [](const char* op, Run run) {
    return BatchingRule{std::string("aten::") + op, "loss", {{"wide", run, nullptr}}};
  };
  BatchingRule probabilities = rule("binary_cross_entropy", binary_cross_entropy);
  probabilities.unbatched = binary_cross_entropy_alone;
  const auto with_numbers = [&](const char* op, Run run, Run alone) {
    BatchingRule all = rule(op, run);
    all.unbatched = alone;
    all.reads_hypers = true;
    return all;
  };
  return {rule("mse_loss", plain<at::mse_loss>),
          rule("l1_loss", plain<at::l1_loss>),
          rule("soft_margin_loss", plain<at::soft_margin_loss>),
          std::move(probabilities),
          rule("binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
          rule("kl_div", kl_div),
          rule("poisson_nll_loss", poisson_nll),
          rule("nll_loss_nd", nll),
          with_numbers("huber_loss", numbered<huber, at::huber_loss>, numbered_alone<huber, at::huber_loss>),
          with_numbers("smooth_l1_loss", numbered<smooth_l1, at::smooth_l1_loss>,
                       numbered_alone<smooth_l1, at::smooth_l1_loss>),
          with_numbers("cross_entropy_loss", cross_entropy_wide, cross_entropy_alone)};
}

}  // namespace hfta::fusion
