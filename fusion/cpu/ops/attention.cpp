// Scaled dot product attention: query [N, heads, L, E], key [N, heads, S, E], value [N, heads, S, V]. A head's scores
// are made, brought to sum 1 and used while they are in the cache; the weights are kept for backward.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "fusion/cpu/kernels/pointwise.hpp"
#include "fusion/cpu/kernels/softmax.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/ops/matrices.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Attention {
  Tensor q, k, v, mask;     // have equal leading sizes, which may be repeated; mask [..., L, S] added or bool
  Tensor weights, kept, y;  // weights and the dropout mask [..., L, S]; y [..., L, V]
  bool causal = false, drops = false;
  double scale = 1;
  std::function<double(const Run&)> rate = {};
  std::uint32_t key = 0;  // key of the dropout mask

  [[nodiscard]] std::int64_t rows() const { return weights.size(-2); }
  [[nodiscard]] std::int64_t columns() const { return weights.size(-1); }
  [[nodiscard]] std::int64_t of_head() const { return rows() * columns(); }
  [[nodiscard]] std::size_t heads() const { return static_cast<std::size_t>(weights.numel() / of_head()); }
};

// Matrices [L, S], one for each thread; each stands for every head's in turn.
struct OneHead {
  Tensor all;   // [threads, ...]
  Tensor head;  // the first one, repeated for all heads
};
OneHead scratch_head(Builder& b, const Attention& a) {
  OneHead one{b.scratch(a.of_head()), {}};
  one.head = one.all.selected(0, 0).sliced(0, 0, a.of_head());
  one.head.sizes = {a.rows(), a.columns()};
  one.head.strides = row_major(one.head.sizes);
  one.head = one.head.expanded(a.weights.sizes);
  return one;
}

// Whether no element belongs to two heads: the tensors may share memory, and repeat some of it.
bool heads_are_apart(const std::vector<Tensor>& tensors, std::size_t heads) {
  constexpr std::int32_t kNobody = -1;
  std::map<int, std::vector<std::int32_t>> owners;  // by buffer, by element
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    const Dims places = places_of(t);
    std::vector<std::int32_t>& owner = owners[t.buffer];
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < t.size(-2) * t.size(-1); ++i) {
        const auto at = static_cast<std::size_t>(t.offset + places[h] + i / t.size(-1) * t.stride(-2) +
                                                 i % t.size(-1) * t.stride(-1));
        if (at >= owner.size()) owner.resize(at + 1, kNobody);
        if (owner[at] != kNobody && owner[at] != static_cast<std::int32_t>(h)) return false;
        owner[at] = static_cast<std::int32_t>(h);
      }
    }
  }
  return true;
}

// A team shares heads.
Stretches head_stretches(const Attention& a, bool apart) {
  const auto heads = static_cast<std::int64_t>(a.heads());
  return apart ? stretches_of(heads, a.of_head() * (a.q.size(-1) + a.v.size(-1)), 1, kStretchProducts)
               : Stretches{heads, heads};
}

template <typename T>
ScoreMask<T> score_mask(const Run& run, const Attention& a, std::int64_t place) {
  ScoreMask<T> mask{.scale = static_cast<T>(a.scale), .causal = a.causal};
  if (!a.mask.defined()) return mask;
  if (a.mask.dtype == DType::kBool) {
    mask.seen = run.at<std::uint8_t>(a.mask) + place;
  } else {
    mask.added = run.at<T>(a.mask) + place;
  }
  mask.row_step = a.mask.stride(-2);
  mask.step = a.mask.stride(-1);
  return mask;
}

template <typename T>
void forward(Builder& b, const Attention& a) {
  const OneHead own = a.drops ? scratch_head(b, a) : OneHead{};
  const auto scores = std::make_shared<const BatchedProduct<T>>(a.q, a.k.transposed(-1, -2), a.weights, false);
  const auto result = std::make_shared<const BatchedProduct<T>>(a.drops ? own.head : a.weights, a.v, a.y, false);
  const Tensor scratch = b.scratch(std::max(scores->scratch(), result->scratch()));
  const Dims places = a.mask.defined() ? places_of(a.mask) : Dims(a.heads(), 0);
  const auto head = [=](const Run& run, std::size_t h, int thread) {
    const std::int64_t at = static_cast<std::int64_t>(h) * a.of_head();
    T* const w = run.at<T>(a.weights) + at;
    T* const spare = run.own<T>(scratch, thread);
    T* const dropped = a.drops ? run.own<T>(own.all, thread) : run.at<T>(a.weights);
    (*scores)(h, run.at<T>(a.q), run.at<T>(a.k), run.at<T>(a.weights), spare);
    attention_weights(w, a.rows(), a.columns(), score_mask<T>(run, a, places[h]));
    if (a.drops) multiply(nullptr, 1, w, run.at<T>(a.kept) + at, dropped, a.of_head(), false);
    (*result)(h, dropped, run.at<T>(a.v), run.at<T>(a.y), spare);
  };
  const Stretches stretches = head_stretches(a, true);
  b.emit({a.q, a.k, a.v, a.mask, a.weights, a.kept, a.y, own.all, scratch}, [=](const Run& run) {
    if (a.drops) fill_mask(run, run.at<T>(a.kept), a.kept.numel(), a.rate(run), a.key);
    share(run.team, stretches, [&](std::int64_t first, std::int64_t count, int thread) {
      for (std::int64_t h = first; h < first + count; ++h) head(run, static_cast<std::size_t>(h), thread);
    });
  });
}

// Memory of an input's gradient. Inputs that share memory only ever add to it: one head's part of one may be another
// head's part of another.
Builder::Part gradient_part(Builder& b, const Attention& a, const Tensor& input) {
  if (!b.wants_gradient(input)) return {};
  Builder::Part part = b.contribute(input);
  const int sharing = (a.q.buffer == input.buffer) + (a.k.buffer == input.buffer) + (a.v.buffer == input.buffer);
  if (part.add || sharing == 1) return part;
  b.emit({part.tensor}, [=](const Run& run) {
    typed(part.tensor.dtype, [&]<typename T>() { std::fill_n(run.at<T>(part.tensor), part.tensor.numel(), T{0}); });
  });
  return {part.tensor, true};
}

template <typename T>
std::shared_ptr<const BatchedProduct<T>> product_into(const Builder::Part& part, const Tensor& left,
                                                      const Tensor& right) {
  if (!part.tensor.defined()) return nullptr;
  return std::make_shared<const BatchedProduct<T>>(left, right, part.tensor, part.add);
}

template <typename T>
void backward(Builder& b, const Attention& a) {
  const auto given = b.gradient(a.y);
  if (!given) return;
  const Tensor dy = *given;
  const Builder::Part dv = gradient_part(b, a, a.v), dq = gradient_part(b, a, a.q), dk = gradient_part(b, a, a.k);
  const OneHead d = scratch_head(b, a), own = a.drops ? scratch_head(b, a) : OneHead{};
  const Tensor& dropped = a.drops ? own.head : a.weights;
  const auto to_weights = std::make_shared<const BatchedProduct<T>>(dy, a.v.transposed(-1, -2), d.head, false);
  const auto to_v = product_into<T>(dv, dropped.transposed(-1, -2), dy), to_q = product_into<T>(dq, d.head, a.k),
             to_k = product_into<T>(dk, d.head.transposed(-1, -2), a.q);
  std::int64_t most = to_weights->scratch();
  for (const auto& product : {to_v, to_q, to_k}) most = std::max(most, product ? product->scratch() : 0);
  const Tensor scratch = b.scratch(most);
  const auto head = [=](const Run& run, std::size_t h, int thread) {
    const std::int64_t at = static_cast<std::int64_t>(h) * a.of_head();
    const T* const w = run.at<T>(a.weights) + at;
    const T* const kept = a.drops ? run.at<T>(a.kept) + at : nullptr;
    T* const spare = run.own<T>(scratch, thread);
    T* const dw = run.own<T>(d.all, thread);
    T* const used = a.drops ? run.own<T>(own.all, thread) : run.at<T>(a.weights);
    if (a.drops) multiply(nullptr, 1, w, kept, used, a.of_head(), false);
    if (to_v) (*to_v)(h, used, run.at<T>(dy), run.at<T>(dv.tensor), spare);
    if (!to_q && !to_k) return;
    (*to_weights)(h, run.at<T>(dy), run.at<T>(a.v), dw, spare);
    attention_weights_backward(dw, w, kept, static_cast<T>(a.scale), a.rows(), a.columns());
    if (to_q) (*to_q)(h, dw, run.at<T>(a.k), run.at<T>(dq.tensor), spare);
    if (to_k) (*to_k)(h, dw, run.at<T>(a.q), run.at<T>(dk.tensor), spare);
  };
  const Stretches stretches = head_stretches(a, heads_are_apart({dv.tensor, dq.tensor, dk.tensor}, a.heads()));
  b.emit({dy, a.q, a.k, a.v, a.weights, a.kept, dv.tensor, dq.tensor, dk.tensor, d.all, own.all, scratch},
         [=](const Run& run) {
           share(run.team, stretches, [&](std::int64_t first, std::int64_t count, int thread) {
             for (std::int64_t h = first; h < first + count; ++h) head(run, static_cast<std::size_t>(h), thread);
           });
         });
}

// Dimension -3, heads, as [heads / repeats, repeats]; one that all heads share stays one.
Tensor grouped(const Tensor& t, std::int64_t repeats) {
  Tensor out = t;
  const auto at = static_cast<std::ptrdiff_t>(t.index(-3));
  const std::int64_t size = t.size(-3), stride = t.stride(-3), inner = size % repeats == 0 && size > 1 ? repeats : 1;
  out.sizes[static_cast<std::size_t>(at)] = size / inner;
  out.strides[static_cast<std::size_t>(at)] = stride * inner;
  out.sizes.insert(out.sizes.begin() + at + 1, inner);
  out.strides.insert(out.strides.begin() + at + 1, stride);
  return out;
}

Tensor shared_by_group(const Tensor& t) {
  Tensor out = t;
  const auto at = static_cast<std::ptrdiff_t>(t.index(-2));
  out.sizes.insert(out.sizes.begin() + at, 1);
  out.strides.insert(out.strides.begin() + at, 0);
  return out;
}

// Memory for y [..., heads, L, V] with each position's heads side by side, which is what the linear layer behind it
// reads, and samples and positions in the order in which the query has them. `inner`: dimensions that count heads.
Tensor result_of(Builder& b, const Tensor& q, const Dims& sizes, std::size_t inner) {
  const std::size_t dims = sizes.size();
  Dims order(dims);
  std::iota(order.begin(), order.end(), 0);
  const auto heads = order.begin() + static_cast<std::ptrdiff_t>(dims - 2 - std::min(inner, dims - 2));
  std::rotate(heads, order.end() - 2, order.end() - 1);  // L before heads
  std::stable_sort(order.begin(), heads + 1, [&](std::int64_t x, std::int64_t y) { return q.stride(x) > q.stride(y); });
  Dims in_memory(dims);
  for (std::size_t d = 0; d < dims; ++d) in_memory[d] = sizes[static_cast<std::size_t>(order[d])];
  return b.fresh(in_memory).permuted(inverse(order));
}

void check(LoweringContext& site, const Attention& a) {
  const Builder& b = site.b;
  for (const Tensor* t : {&a.q, &a.k, &a.v}) {
    if (t->dtype != b.dtype() || t->dim() < 2 || t->numel() == 0) site.fail("its inputs are no matrices");
  }
  if (a.q.size(-1) != a.k.size(-1) || a.k.size(-2) != a.v.size(-2)) site.fail("its sizes do not fit");
  if (!a.mask.defined()) return;
  if (a.mask.dtype != DType::kBool && a.mask.dtype != b.dtype()) site.fail("its mask is neither bool nor of its dtype");
  if (a.mask.dim() < 2) site.fail("its mask is no matrix");
  if (b.wants_gradient(a.mask)) site.fail("its mask has a gradient");
}

// All tensors get the same leading sizes.
void broadcast_leading(Builder& b, Attention& a) {
  Dims sizes;
  for (Tensor* t : {&a.q, &a.k, &a.v}) {
    *t = as_matrices(b, *t);
    sizes = broadcast(sizes, {t->sizes.begin(), t->sizes.end() - 2});
  }
  const auto expand = [&](Tensor& t, std::int64_t rows, std::int64_t columns) {
    Dims wanted = sizes;
    wanted.insert(wanted.end(), {rows, columns});
    t = t.expanded(wanted);
  };
  for (Tensor* t : {&a.q, &a.k, &a.v}) expand(*t, t->size(-2), t->size(-1));
  if (a.mask.defined()) expand(a.mask, a.q.size(-2), a.k.size(-2));
}

// Schema: query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa.
void attention(LoweringContext& site) {
  Builder& b = site.b;
  Attention a{site.tensor(0), site.tensor(1), site.tensor(2), site.tensor_or_none(3), {}, {}, {}};
  check(site, a);
  a.causal = site.flag(5);
  a.drops = site.hyper(4).has_value() || site.number(4) > 0;
  a.scale = site.is_none(6) ? 1 / std::sqrt(static_cast<double>(a.q.size(-1))) : site.number(6);
  const bool groups = site.flag(7) && a.q.dim() > 2 && a.q.size(-3) != a.k.size(-3);
  if (groups) {
    if (a.k.dim() < 3 || a.v.dim() < 3 || a.v.size(-3) != a.k.size(-3) || a.q.size(-3) % a.k.size(-3) != 0) {
      site.fail("its heads cannot be divided into groups");
    }
    const std::int64_t repeats = a.q.size(-3) / a.k.size(-3);
    a.q = grouped(a.q, repeats);
    a.k = shared_by_group(a.k);
    a.v = shared_by_group(a.v);
    if (a.mask.defined() && a.mask.dim() > 2) a.mask = grouped(a.mask, repeats);
  }
  broadcast_leading(b, a);
  Dims sizes = a.q.sizes;
  sizes.back() = a.k.size(-2);
  a.weights = b.fresh(sizes);
  if (a.drops) {
    a.kept = b.fresh(sizes);
    a.rate = site.slot_number(4);
    a.key = b.random_key(site.position());
  }
  sizes.back() = a.v.size(-1);
  a.y = result_of(b, a.q, sizes, groups ? 2 : sizes.size() > 3 ? 1 : 0);
  typed(b.dtype(), [&]<typename T>() { forward<T>(b, a); });
  b.differentiable({a.q, a.k, a.v}, {a.y}, [=, &b] { typed(b.dtype(), [&]<typename T>() { backward<T>(b, a); }); });
  Tensor y = a.y;
  if (groups) {  // heads lie side by side
    const auto at = static_cast<std::ptrdiff_t>(y.index(-4));
    y.sizes[y.index(-3)] *= y.size(-4);
    y.sizes.erase(y.sizes.begin() + at);
    y.strides.erase(y.strides.begin() + at);
  }
  site.bind(y);
}

}  // namespace

std::vector<NamedCompiler> attention_ops() { return {{"aten::scaled_dot_product_attention", attention}}; }

}  // namespace hfta::fusion::cpu
