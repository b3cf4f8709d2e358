// Randomness of a slot's own: dropout in its forms, and random tensors. All counted, also for one slot.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>
#include <cmath>

#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/counted.hpp"

namespace hfta::fusion {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr double kAlpha = 1.7580993408473766;  // Klambauer et al. 2017, section 3

// ---- dropout: input, p, train ----

bool does_nothing(const OpCall& call, const SlotNumbers& rates) {
  return !call.flag(2) || rates.all([](double p) { return p <= 0; });
}

double alpha_scale(double p) { return p < 1 ? 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p)) : 0; }
at::Tensor alpha_scale(const at::Tensor& p) {
  return at::where(p.lt(1), ((kAlpha * kAlpha * p + 1) * (1 - p)).sqrt().reciprocal(), 0.0);
}

// Whole channels: one number for all of [N, C, ...]'s trailing dimensions.
std::vector<std::int64_t> mask_sizes(const at::Tensor& x, const OpCall& call, bool channels) {
  std::vector<std::int64_t> sizes = slot_sizes(x, call);
  for (std::size_t d = 2; channels && d < sizes.size(); ++d) sizes[d] = 1;
  return sizes;
}

template <bool kChannels, bool kInPlace>
Tensors dropout(const OpCall& call) {
  at::Tensor x = call.tensor(0);
  const SlotNumbers rates = call.per_slot(1);
  if (does_nothing(call, rates)) return {x};
  const at::Tensor mask = counted_masks(call, mask_sizes(x, call, kChannels), rates, x.options());
  return {kInPlace ? x.mul_(mask) : x * mask};
}

// Self-normalizing networks: dropped values are set to the activation's lowest, and mean and variance are kept.
template <bool kChannels, bool kInPlace>
Tensors alpha_dropout(const OpCall& call) {
  at::Tensor x = call.tensor(0);
  const SlotNumbers rates = call.per_slot(1);
  if (does_nothing(call, rates)) return {x};
  const SlotNumbers scale = rates.map([](const auto& p) { return alpha_scale(p); });
  const SlotNumbers shift = rates.map([](const auto& p) { return kAlpha * alpha_scale(p) * p; });
  const at::Tensor kept = counted_masks(call, mask_sizes(x, call, kChannels), rates, x.options()).gt(0).to(x.dtype());
  const at::Tensor a = beside(scale, call, x.dim(), x.options()), b = beside(shift, call, x.dim(), x.options());
  const at::Tensor factor = kept * a, added = (kept - 1) * (kAlpha * a) + b;
  return {kInPlace ? x.mul_(factor).add_(added) : x * factor + added};
}

Tensors native_dropout(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  if (!call.is_none(2) && !call.flag(2)) return {x, at::ones_like(x, x.options().dtype(at::kBool))};
  const at::Tensor mask = counted_masks(call, slot_sizes(x, call), call.per_slot(1), x.options());
  return {x * mask, mask.gt(0)};
}

// ---- random tensors ----

at::TensorOptions options_of(const OpCall& call, std::size_t dtype) {
  return at::TensorOptions().device(call.context().device).dtype(call.dtype(dtype).value_or(at::kFloat));
}

at::TensorOptions like_options(const OpCall& call, std::size_t dtype) {
  const at::TensorOptions options = call.tensor(0).options();
  const auto wanted = call.dtype(dtype);
  return wanted ? options.dtype(*wanted) : options;
}

template <at::Tensor (*kDraw)(const OpCall&, std::vector<std::int64_t>, const at::TensorOptions&)>
Tensors of_sizes(const OpCall& call) {
  return {kDraw(call, call.ints(0), options_of(call, 1))};
}

template <at::Tensor (*kDraw)(const OpCall&, std::vector<std::int64_t>, const at::TensorOptions&)>
Tensors of_like(const OpCall& call) {
  return {kDraw(call, slot_sizes(call.tensor(0), call), like_options(call, 1))};
}

// Never in bfloat16, whose steps are too coarse to be compared with a probability.
at::Tensor uniform_beside(const at::Tensor& x, const OpCall& call) {
  const auto type = x.is_floating_point() && x.scalar_type() != at::kDouble ? at::kFloat : at::kDouble;
  return counted_uniform(call, slot_sizes(x, call), x.options().dtype(type));
}

// Probabilities given as a tensor: bernoulli's input, bernoulli_.Tensor's second.
Tensors bernoulli(const OpCall& call) {
  const at::Tensor p = call.tensor(0);
  return {uniform_beside(p, call).lt(p).to(p.dtype())};
}

Tensors bernoulli_by_tensor(const OpCall& call) {
  at::Tensor x = call.tensor(0), p = call.tensor(1);
  while (p.dim() < x.dim()) p = p.unsqueeze(call.slots() > 0 ? 1 : 0);
  return {x.copy_(uniform_beside(x, call).lt(p))};
}

at::Tensor bernoulli_of(const at::Tensor& x, const OpCall& call) {
  const at::Tensor u = uniform_beside(x, call);
  return u.lt(beside(call.per_slot(1), call, x.dim(), u.options()));
}

Tensors bernoulli_p(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  return {bernoulli_of(x, call).to(x.dtype())};
}

Tensors bernoulli_p_in_place(const OpCall& call) {
  at::Tensor x = call.tensor(0);
  return {x.copy_(bernoulli_of(x, call))};
}

// Checks a tensor to be filled by numbers of a range or a mean, which would mean each part of a complex number.
at::Tensor real_numbers(const at::Tensor& x) {
  TORCH_CHECK(!x.is_complex(),
              "found complex numbers, wanted real ones: draw the parts, and join them by torch.complex");
  return x;
}

Tensors normal_in_place(const OpCall& call) {
  at::Tensor x = real_numbers(call.tensor(0));
  const at::Tensor mean = beside(call.per_slot(1), call, x.dim(), x.options());
  const at::Tensor std = beside(call.per_slot(2), call, x.dim(), x.options());
  return {x.copy_(counted_normal(call, slot_sizes(x, call), x.options()) * std + mean)};
}

Tensors uniform_in_place(const OpCall& call) {
  at::Tensor x = real_numbers(call.tensor(0));
  const at::Tensor from = beside(call.per_slot(1), call, x.dim(), x.options());
  const at::Tensor to = beside(call.per_slot(2), call, x.dim(), x.options());
  return {x.copy_(counted_uniform(call, slot_sizes(x, call), x.options()) * (to - from) + from)};
}

Tensors exponential_in_place(const OpCall& call) {
  at::Tensor x = real_numbers(call.tensor(0));
  const at::Tensor rate = beside(call.per_slot(1), call, x.dim(), x.options());
  return {x.copy_(-at::log1p(-counted_uniform(call, slot_sizes(x, call), x.options())) / rate)};
}

at::Tensor whole_numbers(const OpCall& call, std::vector<std::int64_t> sizes, std::int64_t low, std::int64_t high,
                         const at::TensorOptions& options) {
  const at::Tensor u = counted_uniform(call, std::move(sizes), options.dtype(at::kDouble));
  return at::floor(u * static_cast<double>(high - low)).add_(static_cast<double>(low)).to(options.dtype());
}

at::TensorOptions whole_options(const OpCall& call, std::size_t dtype) {
  return options_of(call, dtype).dtype(call.dtype(dtype).value_or(at::kLong));
}

Tensors randint(const OpCall& call) {
  return {whole_numbers(call, call.ints(1), 0, call.integer(0), whole_options(call, 2))};
}

Tensors randint_from(const OpCall& call) {
  return {whole_numbers(call, call.ints(2), call.integer(0), call.integer(1), whole_options(call, 3))};
}

Tensors randint_like(const OpCall& call) {
  return {whole_numbers(call, slot_sizes(call.tensor(0), call), 0, call.integer(1), like_options(call, 2))};
}

Tensors randint_like_from(const OpCall& call) {
  return {
      whole_numbers(call, slot_sizes(call.tensor(0), call), call.integer(1), call.integer(2), like_options(call, 3))};
}

Tensors randperm(const OpCall& call) {
  const auto options = whole_options(call, 1);
  return {
      at::argsort(counted_uniform(call, {call.integer(0)}, options.dtype(at::kDouble)), true, -1).to(options.dtype())};
}

// Schema: self, lower, upper, training.
Tensors rrelu(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  const at::TensorOptions wide = x.options().dtype(at::toOpMathType(x.scalar_type()));
  const at::Tensor lower = beside(call.per_slot(1), call, x.dim(), wide);
  const at::Tensor upper = beside(call.per_slot(2), call, x.dim(), wide);
  if (!call.flag(3)) return {at::where(x.ge(0), x, (x.to(wide) * ((lower + upper) / 2)).to(x.dtype()))};
  const at::Tensor slope = uniform_beside(x, call) * (upper - lower) + lower;
  return {at::where(x.ge(0), x, x * slope.to(x.dtype()))};
}

BatchingRule counted(const char* op, Tensors (*run)(const OpCall&)) {
  return {op, "random", {{"counted", run, nullptr}}, {}, run, nullptr, true};
}

}  // namespace

std::vector<BatchingRule> random_rules() {
  return {counted("aten::dropout", dropout<false, false>),
          counted("aten::dropout_", dropout<false, true>),
          counted("aten::feature_dropout", dropout<true, false>),
          counted("aten::feature_dropout_", dropout<true, true>),
          counted("aten::alpha_dropout", alpha_dropout<false, false>),
          counted("aten::alpha_dropout_", alpha_dropout<false, true>),
          counted("aten::feature_alpha_dropout", alpha_dropout<true, false>),
          counted("aten::feature_alpha_dropout_", alpha_dropout<true, true>),
          counted("aten::native_dropout", native_dropout),
          counted("aten::bernoulli", bernoulli),
          counted("aten::bernoulli.p", bernoulli_p),
          counted("aten::bernoulli_.float", bernoulli_p_in_place),
          counted("aten::bernoulli_.Tensor", bernoulli_by_tensor),
          counted("aten::rand", of_sizes<counted_uniform>),
          counted("aten::rand_like", of_like<counted_uniform>),
          counted("aten::randn", of_sizes<counted_normal>),
          counted("aten::randn_like", of_like<counted_normal>),
          counted("aten::normal_", normal_in_place),
          counted("aten::uniform_", uniform_in_place),
          counted("aten::exponential_", exponential_in_place),
          counted("aten::randint", randint),
          counted("aten::randint.low", randint_from),
          counted("aten::randint_like", randint_like),
          counted("aten::randint_like.low_dtype", randint_like_from),
          counted("aten::randperm", randperm),
          counted("aten::rrelu", rrelu)};
}

}  // namespace hfta::fusion
