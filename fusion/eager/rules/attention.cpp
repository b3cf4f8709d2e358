// Scaled dot product attention: query [c, N, heads..., L, E], key [c, N, heads..., S, E], value [c, N, heads..., S, V].
#include "fusion/eager/attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fusion/eager/autocast.hpp"
#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/counted.hpp"
#include "fusion/eager/kernel_types.hpp"

namespace hfta::fusion {
namespace {

// Schema: query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa.
struct Attention {
  at::Tensor query, key, value, mask;
  SlotNumbers rates;
  bool causal;
  std::optional<double> scale;
  bool grouped_queries;

  explicit Attention(const OpCall& call)
      : query(call.tensor(0)),
        key(call.tensor(1)),
        value(call.tensor(2)),
        mask(call.tensor(3)),
        rates(call.per_slot(4)),
        causal(call.flag(5)),
        grouped_queries(call.flag(7)) {
    if (call.is_hyper(6)) {  // whatever the other slots have, so that no bit depends on them
      query = query * beside(call.per_slot(6), call, query.dim(), query.options());
      scale = 1;
    } else if (!call.is_none(6)) {
      scale = call.number(6);
    }
  }

  [[nodiscard]] bool drops() const {
    return !rates.all([](double p) { return p <= 0; });
  }
  [[nodiscard]] double factor() const { return scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1)))); }
};

// Attention as torch.nn.functional documents scaled_dot_product_attention, with the slots' own masks on the weights.
at::Tensor with_dropout(const OpCall& call, Attention a) {
  if (a.grouped_queries) {
    const std::int64_t repeats = a.query.size(-3) / a.key.size(-3);
    a.key = a.key.repeat_interleave(repeats, -3);
    a.value = a.value.repeat_interleave(repeats, -3);
  }
  at::Tensor scores = at::matmul(a.query, a.key.transpose(-2, -1)) * a.factor();
  const double lowest = -std::numeric_limits<double>::infinity();
  if (a.causal) {
    const at::Tensor seen = at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), lowest);
  }
  if (a.mask.defined()) {
    while (call.slots() > 0 && a.mask.dim() < scores.dim()) a.mask = a.mask.unsqueeze(1);
    scores = a.mask.scalar_type() == at::kBool ? scores.masked_fill(a.mask.logical_not(), lowest) : scores + a.mask;
  }
  const at::Tensor weights = at::_safe_softmax(scores, -1);  // 0 for who sees nothing, as without dropout
  return at::matmul(weights * counted_masks(call, slot_sizes(weights, call), a.rates, weights.options()), a.value);
}

// Runs kernels of ours, where they are for it: q, k and v [c, N, heads..., rows, features].
std::optional<at::Tensor> by_own_kernels(const Attention& a, const at::Tensor& q, const at::Tensor& k,
                                         const at::Tensor& v) {
  if (a.mask.defined() || a.grouped_queries || is_lowered(q) || !kernels_take(q)) return std::nullopt;
  if (!attention_takes(q, k, v)) return std::nullopt;
  return own_attention(q, k, v, a.factor(), a.causal);
}

at::Tensor without_dropout(const Attention& a, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& mask) {
  return at::scaled_dot_product_attention(q, k, v, mask.defined() ? std::optional(mask) : std::nullopt, 0.0, a.causal,
                                          a.scale, a.grouped_queries);
}

std::vector<at::Tensor> alone(const OpCall& call) {
  const Attention a(call);
  if (a.drops()) return {with_dropout(call, a)};
  if (const auto y = by_own_kernels(a, a.query.unsqueeze(0), a.key.unsqueeze(0), a.value.unsqueeze(0))) {
    return {y->squeeze(0)};  // the numbers that the slot has among others
  }
  return {without_dropout(a, a.query, a.key, a.value, a.mask)};
}

// [c, ...] of `dims` dimensions, the second repeated to n: [c n, ...].
at::Tensor merged_with_slots(at::Tensor t, std::int64_t dims, std::int64_t n) {
  while (t.dim() < dims) t = t.unsqueeze(1);
  std::vector<std::int64_t> sizes = t.sizes().vec();
  sizes[1] = n;
  return t.expand(sizes).flatten(0, 1);
}

// Slots join the batch, or are one where there is none.
std::vector<at::Tensor> merged(const OpCall& call) {
  const Attention a(call);
  if (a.drops()) return {with_dropout(call, a)};
  if (const auto y = by_own_kernels(a, a.query, a.key, a.value)) return {*y};
  const std::int64_t dims = std::max({a.query.dim(), a.key.dim(), a.value.dim()});
  if (dims == 3) return {without_dropout(a, a.query, a.key, a.value, a.mask)};
  std::int64_t n = 1;
  for (const at::Tensor* t : {&a.query, &a.key, &a.value, &a.mask}) {
    if (t->defined() && t->dim() == dims && t->size(1) != 1) n = t->size(1);
  }
  const auto joined = [&](const at::Tensor& t) { return t.defined() ? merged_with_slots(t, dims, n) : t; };
  const at::Tensor y = without_dropout(a, joined(a.query), joined(a.key), joined(a.value), joined(a.mask));
  return {y.unflatten(0, {a.query.size(0), n})};
}

}  // namespace

std::vector<BatchingRule> attention_rules() {
  return {{"aten::scaled_dot_product_attention", "attention", {{"merged", merged, nullptr}}, {}, alone, nullptr, true}};
}

}  // namespace hfta::fusion
