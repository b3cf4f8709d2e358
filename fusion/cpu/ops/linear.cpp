// x [..., in], weight [out, in], bias [out] -> [..., out].
#include <memory>

#include "fusion/cpu/kernels/gemm.hpp"
#include "fusion/cpu/kernels/pack.hpp"
#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"

namespace hfta::fusion::cpu {
namespace {

struct Linear {
  Tensor x, weight, bias, y;  // x [M, in], y [M, out] as matrices
  Tensor signs = {};          // signs of y, where its relu does not read y itself
  bool relu = false;
  std::int64_t m = 0, in = 0, out = 0;
  std::int64_t ldw = 0;  // a weight may be some columns of a larger one
  bool alone = false;    // nobody else reads the weight, as far as the op knows
};

// Whether samples are few and the weight is large: turning the weight would take longer than the product. Instead
// y^T = weight x^T is computed, and y^T turned, which is small.
bool turns_output(const Linear& l) {
  constexpr std::int64_t kFew = 32, kLarge = 65536;
  return l.m <= kFew && l.in >= 2 * l.m && l.in * l.out >= kLarge;
}

Product product_of(const Linear& l) {
  if (!turns_output(l)) {
    return {.m = l.m, .n = l.out, .k = l.in, .lda = l.in, .ldb = l.ldw, .ldc = l.out, .b_transposed = true};
  }
  return {.m = l.out, .n = l.m, .k = l.in, .lda = l.ldw, .ldb = l.in, .ldc = l.m, .b_transposed = true};
}

template <typename T>
struct Forward {
  std::shared_ptr<const Gemm<T>> gemm;
  Tensor scratch, turned;  // turned: y^T
};

template <typename T>
Forward<T> forward_of(Builder& b, const Linear& l, const std::shared_ptr<const Gemm<T>>& gemm) {
  return {gemm, b.fresh({gemm->scratch(b.threads())}), turns_output(l) ? b.fresh({l.out, l.m}) : Tensor{}};
}

template <typename T>
Kernel turning_kernel(const Linear& l, const Forward<T>& f) {
  return [=](const Run& run) {
    T* const turned = run.at<T>(f.turned);
    T* const y = run.at<T>(l.y);
    (*f.gemm)(run.at<T>(l.weight), run.at<T>(l.x), turned, run.at<T>(f.scratch), run.team);
    transpose(turned, l.m, l.out, l.m, y, l.out);
    if (l.bias.defined() || l.relu) {
      add_bias(y, l.out, l.m, l.out, l.bias.defined() ? run.at<T>(l.bias) : nullptr, l.relu);
    }
  };
}

template <typename T>
Kernel forward_kernel(const Linear& l, const Forward<T>& f) {
  if (f.turned.defined()) return turning_kernel(l, f);
  return [=, gemm = f.gemm, scratch = f.scratch](const Run& run) {
    const T* const bias = l.bias.defined() ? run.at<T>(l.bias) : nullptr;
    if (bias == nullptr && !l.relu) {
      (*gemm)(run.at<T>(l.x), run.at<T>(l.weight), run.at<T>(l.y), run.at<T>(scratch), run.team);
      return;
    }
    const auto finish = [&](T* corner, std::int64_t ld, std::int64_t column, std::int64_t rows, std::int64_t columns) {
      add_bias(corner, ld, rows, columns, bias == nullptr ? nullptr : bias + column, l.relu);
    };
    (*gemm)(run.at<T>(l.x), run.at<T>(l.weight), run.at<T>(l.y), run.at<T>(scratch), run.team, std::cref(finish));
  };
}

// `final`: nobody writes into y afterwards.
template <typename T>
void forward(Builder& b, const Linear& l, bool final) {
  const auto gemm = std::make_shared<const Gemm<T>>(product_of(l));
  const Forward<T> first = forward_of<T>(b, l, gemm), again = forward_of<T>(b, l, gemm);
  b.emit({l.x, l.weight, l.bias, l.y, first.scratch, first.turned}, forward_kernel<T>(l, first));
  if (final) {
    b.recomputable(l.y, {l.x, l.weight, l.bias, l.y, again.scratch, again.turned}, forward_kernel<T>(l, again),
                   RecomputeCost::kProduct);
  }
}

// dy becomes that of the product, and gives the bias's.
template <typename T>
void backward_bias(Builder& b, const Linear& l, const Tensor& dy) {
  const bool wants_bias = b.wants_gradient(l.bias), masks = l.relu && !l.signs.defined();
  if (l.signs.defined()) emit_mask(b, dy, l.signs);
  if (!wants_bias && !masks) return;
  const Builder::Part db = b.contribute_if_wanted(l.bias);
  b.emit({dy, masks ? l.y : Tensor{}, db.tensor}, [=](const Run& run) {
    mask_and_sum(run.team, run.at<T>(dy), masks ? run.at<T>(l.y) : nullptr, l.out, l.m, l.out,
                 wants_bias ? run.at<T>(db.tensor) : nullptr, db.add);
  });
}

// dw [rows, in] = or += dy^T x, where dy has so many columns of the layer's.
template <typename T>
void emit_weight_gradient(Builder& b, const Linear& l, const Tensor& dy, const Builder::Part& dw) {
  emit_product<T>(b, dy, l.x, dw.tensor,
                  {.m = dw.tensor.size(0),
                   .n = l.in,
                   .k = l.m,
                   .lda = l.out,
                   .ldb = l.in,
                   .ldc = dw.tensor.stride(0),
                   .a_transposed = true,
                   .add = dw.add,
                   .rows_of_whole = l.out});
  b.reads_for_gradient(l.x, l.weight, l.in, 1, {});
}

template <typename T>
void backward_input(Builder& b, const Linear& l, const Tensor& dy) {
  if (!b.wants_gradient(l.x)) return;
  const Builder::Part dx = b.contribute(l.x);
  emit_product<T>(b, dy, l.weight, dx.tensor,
                  {.m = l.m, .n = l.in, .k = l.out, .lda = l.out, .ldb = l.ldw, .ldc = l.in, .add = dx.add});
}

// If the weight's gradient comes in rows, each is applied as soon as it is there: dx, which reads the weight, is first.
template <typename T>
void backward(Builder& b, const Linear& l) {
  const auto dy = b.gradient(l.y);
  if (!dy) return;
  backward_bias<T>(b, l, *dy);
  const bool wants_weight = b.wants_gradient(l.weight);
  std::vector<WeightGradient> rows;
  if (wants_weight && l.alone) rows = b.gradient_in_rows(l.weight, kBlockRows);
  if (!rows.empty()) backward_input<T>(b, l, *dy);
  if (wants_weight) emit_output_sums(b, l.weight, *dy, l.m);
  for (const WeightGradient& part : rows) {
    const Tensor columns = dy->sliced(-1, part.first / l.in, part.tensor.size(0));
    emit_weight_gradient<T>(b, l, columns, {part.tensor});
  }
  if (!rows.empty()) return;
  if (wants_weight) emit_weight_gradient<T>(b, l, *dy, b.contribute(l.weight));
  backward_input<T>(b, l, *dy);
}

// `x`, `weight` and `bias` fit.
Linear linear_of(Builder& b, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const bool in_rows = weight.strides[1] == 1 && weight.strides[0] >= weight.size(1);
  Linear l{b.contiguous(x), in_rows ? weight : b.contiguous(weight), b.contiguous_or_none(bias), {}};
  if (l.weight.size(0) == 1)
    l.weight.strides[0] = l.weight.size(1);  // any stride fits a single row; products want this one
  l.ldw = l.weight.strides[0];
  l.in = l.x.size(-1);
  l.out = l.weight.size(0);
  l.m = l.x.numel() / l.in;
  Dims sizes = l.x.sizes;
  sizes.back() = l.out;
  l.y = b.fresh(sizes);
  return l;
}

void emit(Builder& b, Linear l, bool final) {
  emit_input_square(b, l.weight, l.x);
  typed(b.dtype(), [&]<typename T>() { forward<T>(b, l, final); });
  if (l.relu) l.signs = kept_signs(b, l.y);
  b.differentiable({l.x, l.weight, l.bias}, {l.y},
                   [&b, l] { typed(b.dtype(), [&]<typename T>() { backward<T>(b, l); }); });
}

// Schema: input, weight, bias.
void linear(LoweringContext& site) {
  const Tensor x = site.floats(0), weight = site.floats(1);
  if (weight.dim() != 2) site.fail("its weight is no matrix");
  if (x.size(-1) != weight.size(1)) site.fail("its input has another number of features than its weight");
  if (x.numel() == 0 || weight.numel() == 0) site.fail("its input or its weight is empty");
  Linear l = linear_of(site.b, x, weight, site.floats_or_none(2, {weight.size(0)}));
  l.relu = fused_relu(site);
  l.alone = true;
  emit(site.b, l, true);
  site.bind(l.y);
}

}  // namespace

Tensor linear_map(Builder& b, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Linear l = linear_of(b, x, weight, bias);
  emit(b, l, false);
  return l.y;
}

std::vector<NamedCompiler> linear_ops() { return {{"aten::linear", linear}}; }

}  // namespace hfta::fusion::cpu
