// Element by element.
#include "fusion/cpu/kernels/pointwise.hpp"

#include <algorithm>
#include <memory>

#include "fusion/cpu/kernels/rows.hpp"
#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

using SlotNumber = std::function<double(const Run&)>;

// ---- One tensor ----

struct OneTensor {
  Unary op;
  SlotNumber p;
  Tensor x, y;
};

// The slope is made along with the value, and backward is a product.
template <typename T>
void emit_with_slope(Builder& b, const OneTensor& u) {
  const std::int64_t n = u.x.numel();
  Tensor slope = b.fresh(u.x.sizes);
  slope.strides = u.x.strides;
  b.emit({u.x, u.y, slope}, [=](const Run& run) {
    apply_with_slope(run.team, u.op, run.at<T>(u.x), run.at<T>(u.y), run.at<T>(slope), n);
  });
  b.differentiable({u.x}, {u.y}, [&b, u, slope, n] {
    const auto given = b.gradient(u.y);
    if (!given) return;
    const Tensor& dy = *given;
    const Builder::Part dx = b.contribute(u.x);
    b.emit({slope, dy, dx.tensor}, [=](const Run& run) {
      multiply(run.team, 1, run.at<T>(dy), run.at<T>(slope), run.at<T>(dx.tensor), n, dx.add);
    });
  });
}

template <typename T>
void emit_unary(Builder& b, const OneTensor& u) {
  if (b.wants_gradient(u.x) && has_costly_slope(u.op)) return emit_with_slope<T>(b, u);
  const std::int64_t n = u.x.numel();
  const auto kernel = [=](const Run& run) { apply(run.team, u.op, u.p(run), run.at<T>(u.x), run.at<T>(u.y), n); };
  b.emit({u.x, u.y}, kernel);
  b.recomputable(u.y, {u.x, u.y}, kernel, RecomputeCost::kPass);
  b.differentiable({u.x}, {u.y}, [&b, u, n] {
    const auto given = b.gradient(u.y);
    if (!given) return;
    const Tensor& dy = *given;
    const Builder::Part dx = b.contribute(u.x);
    b.emit({u.x, u.y, dy, dx.tensor}, [=](const Run& run) {
      apply_slope(run.team, u.op, u.p(run), run.at<T>(u.x), run.at<T>(u.y), run.at<T>(dy), run.at<T>(dx.tensor), n,
                  dx.add);
    });
  });
}

Tensor mapped(LoweringContext& site, const Tensor& given, Unary op, SlotNumber p) {
  Builder& b = site.b;
  if (given.dtype != b.dtype()) site.fail("its input is no floating-point tensor");
  const Tensor x = given.dense() ? given : b.contiguous(given);
  Tensor y = b.fresh(x.sizes);
  y.strides = x.strides;
  typed(b.dtype(), [&]<typename T>() { emit_unary<T>(b, {op, std::move(p), x, y}); });
  return y;
}

void unary(LoweringContext& site, Unary op, SlotNumber p) { site.bind(mapped(site, site.tensor(0), op, std::move(p))); }

template <Unary kOp>
void plain(LoweringContext& site) {
  if (waits_for_product(site)) return site.bind(site.floats(0));
  unary(site, kOp, [](const Run&) { return 0.0; });
}

template <Unary kOp>
void with_number(LoweringContext& site) {
  unary(site, kOp, site.slot_number(1));
}

// Schema: input, approximate.
bool approximates_by_tanh(const LoweringContext& site) {
  const auto* how = site.argument<std::string>(1);
  return how != nullptr && *how == "tanh";
}

void gelu(LoweringContext& site) {
  approximates_by_tanh(site) ? plain<Unary::kGeluTanh>(site) : plain<Unary::kGelu>(site);
}

// Schema: input, alpha, scale, input_scale.
void elu(LoweringContext& site) {
  if (site.number(2) != 1 || site.number(3) != 1) site.fail("only with scales of 1");
  with_number<Unary::kElu>(site);
}

// Schema: input.
void negate(LoweringContext& site) {
  unary(site, Unary::kScale, [](const Run&) { return -1.0; });
}

// Schema: input.
void square(LoweringContext& site) {
  if (!fused_rms_norm(site)) plain<Unary::kSquare>(site);
}

// Schema: input, exponent.
void power(LoweringContext& site) {
  const bool known = !site.hyper(1);
  if (known && site.number(1) == 2) return square(site);
  if (known && site.number(1) == 3) return plain<Unary::kCube>(site);
  if (known && site.number(1) == -1) return plain<Unary::kReciprocal>(site);
  if (known && site.number(1) == -0.5) return plain<Unary::kReciprocalSqrt>(site);
  if (known && site.number(1) == 0.5) return plain<Unary::kSqrt>(site);
  with_number<Unary::kPower>(site);
}

// Schema: input, beta, threshold.
void softplus(LoweringContext& site) {
  if (site.number(2) != 20) site.fail("only with a threshold of 20");
  with_number<Unary::kSoftplus>(site);
}

// Schema: input, min, max; either may be None.
void clamp(LoweringContext& site) {
  Tensor x = site.tensor(0);
  if (!site.is_none(1)) x = mapped(site, x, Unary::kAtLeast, site.slot_number(1));
  if (!site.is_none(2)) x = mapped(site, x, Unary::kAtMost, site.slot_number(2));
  site.bind(x);
}

void between(LoweringContext& site, SlotNumber low, SlotNumber high) {
  site.bind(mapped(site, mapped(site, site.tensor(0), Unary::kOver, std::move(low)), Unary::kUnder, std::move(high)));
}

// Schema: input, min_val, max_val.
void hardtanh(LoweringContext& site) { between(site, site.slot_number(1), site.slot_number(2)); }

// Schema: input.
void relu6(LoweringContext& site) {
  between(
      site, [](const Run&) { return 0.0; }, [](const Run&) { return 6.0; });
}

// ---- Two tensors ----

struct TwoTensors {
  Binary op;
  SlotNumber scale;  // factor of the second operand
  Tensor a, b, y;
};

// Rows whose tensors all advance by 1 or stand still.
Loops binary_loops(const Tensor& y, const Tensor& a, const Tensor& b) {
  return loops_over({y, a.expanded(y.sizes), b.expanded(y.sizes)});
}

bool plain_rows(const Loops& loops) {
  return loops.strides[0].back() == 1 && loops.strides[1].back() <= 1 && loops.strides[2].back() <= 1;
}

// `whole`, of the result's sizes, as a part of the gradient of an input that may have been repeated.
template <typename T>
void contribute_summed(Builder& b, const Tensor& input, const Tensor& whole) {
  if (input.sizes == whole.sizes) return b.contribute(input, whole);
  const std::int64_t n = input.numel();
  const bool rows = input.contiguous() && whole.contiguous() && [&] {  // repeated over leading dimensions only
    Dims tail = input.sizes;
    while (!tail.empty() && tail.front() == 1) tail.erase(tail.begin());
    return std::equal(tail.rbegin(), tail.rend(), whole.sizes.rbegin());
  }();
  if (rows) {
    const Builder::Part part = b.contribute(input);
    const std::int64_t m = whole.numel() / n;
    b.emit({whole, part.tensor}, [=](const Run& run) {
      mask_and_sum(run.team, run.at<T>(whole), nullptr, n, m, n, run.at<T>(part.tensor), part.add);
    });
    return;
  }
  const Tensor sum = b.fresh(input.sizes);
  b.emit({sum}, [=](const Run& run) { std::fill_n(run.at<T>(sum), n, T{0}); });
  b.emit({whole, sum}, copy_kernel(whole, sum.expanded(whole.sizes), true));
  b.contribute(input, sum);
}

template <typename T>
void emit_binary(Builder& b, const TwoTensors& t) {
  const Loops loops = binary_loops(t.y, t.a, t.b);
  const std::int64_t n = loops.sizes.back(), sa = loops.strides[1].back(), sb = loops.strides[2].back();
  b.emit({t.a, t.b, t.y}, [=](const Run& run) {
    const double scale = t.scale(run);
    T* const y = run.at<T>(t.y);
    const T* const p = run.at<T>(t.a);
    const T* const q = run.at<T>(t.b);
    const bool one = rows_of(loops) == 1;  // the team then shares the row itself
    for_each_row(one ? nullptr : run.team, loops, [&](const std::int64_t* at) {
      combine(one ? run.team : nullptr, t.op, scale, p + at[1], sa, q + at[2], sb, y + at[0], n);
    });
  });
}

// dy times another tensor (or dy / b), of y's sizes, in a buffer of its own.
template <typename T>
Tensor scaled(Builder& b, Binary op, const SlotNumber& scale, const Tensor& dy, const Tensor& other) {
  Tensor out = b.fresh(dy.sizes);
  out.strides = dy.strides;
  emit_binary<T>(b, {op, scale, dy, other, out});
  return out;
}

template <typename T>
void binary_backward(Builder& b, const TwoTensors& t) {
  const auto given = b.gradient(t.y);
  if (!given) return;
  const Tensor& dy = *given;
  const bool wants_a = b.wants_gradient(t.a), wants_b = b.wants_gradient(t.b);
  const SlotNumber one = [](const Run&) { return 1.0; };
  const auto times = [&](const SlotNumber& factor) {
    Tensor out = b.fresh(dy.sizes);
    out.strides = dy.strides;
    const std::int64_t n = dy.numel();
    b.emit({dy, out}, [=](const Run& run) {
      multiply(run.team, factor(run), run.at<T>(dy), static_cast<const T*>(nullptr), run.at<T>(out), n, false);
    });
    return out;
  };
  switch (t.op) {
    case Binary::kAdd:
    case Binary::kSubtract:
      if (wants_b) {
        const double sign = t.op == Binary::kAdd ? 1 : -1;
        contribute_summed<T>(b, t.b, times([=, scale = t.scale](const Run& run) { return sign * scale(run); }));
      }
      if (wants_a && t.a.sizes == dy.sizes) {
        b.hand_on_gradient(t.y, t.a);
      } else if (wants_a) {
        contribute_summed<T>(b, t.a, dy);
      }
      break;
    case Binary::kMultiply:
      if (wants_a) contribute_summed<T>(b, t.a, scaled<T>(b, Binary::kMultiply, t.scale, dy, t.b));
      if (wants_b) contribute_summed<T>(b, t.b, scaled<T>(b, Binary::kMultiply, t.scale, dy, t.a));
      break;
    case Binary::kDivide:
      if (wants_b) {  // -dy y / b
        const Tensor times_y = scaled<T>(
            b, Binary::kMultiply, [](const Run&) { return -1.0; }, dy, t.y);
        contribute_summed<T>(b, t.b, scaled<T>(b, Binary::kDivide, one, times_y, t.b));
      }
      if (wants_a) contribute_summed<T>(b, t.a, scaled<T>(b, Binary::kDivide, t.scale, dy, t.b));
      break;
  }
}

Tensor combined(LoweringContext& site, TwoTensors t) {
  Builder& b = site.b;
  if (t.a.dtype != b.dtype() || t.b.dtype != b.dtype()) site.fail("its inputs are not floating-point tensors");
  const Dims sizes = broadcast(t.a.sizes, t.b.sizes);
  t.y = b.fresh(sizes);
  const Tensor& larger = t.a.sizes == sizes ? t.a : t.b;
  if (larger.sizes == sizes && larger.dense()) t.y.strides = larger.strides;
  if (!plain_rows(binary_loops(t.y, t.a, t.b))) {
    t.a = b.contiguous(t.a);
    t.b = b.contiguous(t.b);
    t.y.strides = row_major(sizes);
    if (!plain_rows(binary_loops(t.y, t.a, t.b)))
      site.fail("its inputs lie in memory in no way that rows can be made of");
  }
  typed(b.dtype(), [&]<typename T>() { emit_binary<T>(b, t); });
  b.differentiable({t.a, t.b}, {t.y}, [&b, t] { typed(b.dtype(), [&]<typename T>() { binary_backward<T>(b, t); }); });
  return t.y;
}

void binary(LoweringContext& site, Binary op, SlotNumber scale) {
  site.bind(combined(site, {op, std::move(scale), site.tensor(0), site.tensor(1), {}}));
}

// Schema: input, other, alpha.
template <Binary kOp>
void add(LoweringContext& site) {
  if (kOp == Binary::kAdd && fused_rotation(site)) return;
  const SlotNumber alpha = site.slot_number(2);
  if (!site.is_number(1) && !site.hyper(1)) return binary(site, kOp, alpha);
  const double sign = kOp == Binary::kAdd ? 1 : -1;
  unary(site, Unary::kShift,
        [=, other = site.slot_number(1)](const Run& run) { return sign * alpha(run) * other(run); });
}

// Schema: input, other.
template <Binary kOp>
void multiply_or_divide(LoweringContext& site) {
  if (kOp == Binary::kMultiply && gated_product(site)) return;
  if (!site.is_number(1) && !site.hyper(1)) return binary(site, kOp, [](const Run&) { return 1.0; });
  unary(site, Unary::kScale, [other = site.slot_number(1)](const Run& run) {
    return kOp == Binary::kMultiply ? other(run) : 1 / other(run);
  });
}

// Schema: input, tensor1, tensor2, value: input + value (tensor1 tensor2), or the quotient of the two.
template <Binary kOp>
void add_combined(LoweringContext& site) {
  const SlotNumber one = [](const Run&) { return 1.0; };
  const Tensor other = combined(site, {kOp, one, site.tensor(1), site.tensor(2), {}});
  site.bind(combined(site, {Binary::kAdd, site.slot_number(3), site.tensor(0), other, {}}));
}

// ---- Dropout ----

// Schema: input, p, train. The mask is that of every other way to run: counted in row-major order.
void dropout(LoweringContext& site) {
  Builder& b = site.b;
  if (!site.flag(2) || (!site.hyper(1) && site.number(1) == 0)) return site.bind(site.tensor(0));
  const Tensor x = b.contiguous(site.floats(0));
  const Tensor mask = b.fresh(x.sizes), y = b.fresh(x.sizes);
  const SlotNumber rate = site.slot_number(1);
  const std::uint32_t node = b.random_key(site.position());
  const std::int64_t n = x.numel();
  typed(b.dtype(), [&]<typename T>() {
    b.emit({x, mask, y}, [=](const Run& run) {
      fill_mask(run, run.at<T>(mask), n, rate(run), node);
      multiply(run.team, 1, run.at<T>(x), run.at<T>(mask), run.at<T>(y), n, false);
    });
    b.differentiable({x}, {y}, [=, &b] {
      const auto given = b.gradient(y);
      if (!given) return;
      const Builder::Part dx = b.contribute(x);
      b.emit({*given, mask, dx.tensor}, [=, dy = *given](const Run& run) {
        multiply(run.team, 1, run.at<T>(dy), run.at<T>(mask), run.at<T>(dx.tensor), n, dx.add);
      });
    });
  });
  site.bind(y);
}

}  // namespace

std::optional<Unary> costly_activation(const LoweringContext& site) {
  const std::string& op = site.node().op;
  if (op == "aten::silu") return Unary::kSilu;
  if (op == "aten::mish") return Unary::kMish;
  if (op != "aten::gelu") return std::nullopt;
  return approximates_by_tanh(site) ? Unary::kGeluTanh : Unary::kGelu;
}

Tensor added(LoweringContext& site, const Tensor& x, const Tensor& y, double factor) {
  return combined(site, {Binary::kAdd, [factor](const Run&) { return factor; }, x, y, {}});
}

std::vector<NamedCompiler> pointwise_ops() {
  std::vector<NamedCompiler> ops = {{"aten::gelu", gelu},
                                    {"aten::elu", elu},
                                    {"aten::leaky_relu", with_number<Unary::kLeakyRelu>},
                                    {"aten::add.Tensor", add<Binary::kAdd>},
                                    {"aten::add.Scalar", add<Binary::kAdd>},
                                    {"aten::sub.Tensor", add<Binary::kSubtract>},
                                    {"aten::sub.Scalar", add<Binary::kSubtract>},
                                    {"aten::mul.Tensor", multiply_or_divide<Binary::kMultiply>},
                                    {"aten::mul.Scalar", multiply_or_divide<Binary::kMultiply>},
                                    {"aten::div.Tensor", multiply_or_divide<Binary::kDivide>},
                                    {"aten::div.Scalar", multiply_or_divide<Binary::kDivide>},
                                    {"aten::addcmul", add_combined<Binary::kMultiply>},
                                    {"aten::addcdiv", add_combined<Binary::kDivide>},
                                    {"aten::dropout", dropout}};
  const std::vector<NamedCompiler> plain_ones = {{"aten::relu", plain<Unary::kRelu>},
                                                 {"aten::tanh", plain<Unary::kTanh>},
                                                 {"aten::sigmoid", plain<Unary::kSigmoid>},
                                                 {"aten::silu", plain<Unary::kSilu>},
                                                 {"aten::exp", plain<Unary::kExp>},
                                                 {"aten::sqrt", plain<Unary::kSqrt>},
                                                 {"aten::square", square},
                                                 {"aten::log", plain<Unary::kLog>},
                                                 {"aten::abs", plain<Unary::kAbs>},
                                                 {"aten::reciprocal", plain<Unary::kReciprocal>},
                                                 {"aten::rsqrt", plain<Unary::kReciprocalSqrt>},
                                                 {"aten::mish", plain<Unary::kMish>},
                                                 {"aten::hardsigmoid", plain<Unary::kHardsigmoid>},
                                                 {"aten::hardswish", plain<Unary::kHardswish>},
                                                 {"aten::neg", negate},
                                                 {"aten::pow.Tensor_Scalar", power},
                                                 {"aten::softplus", softplus},
                                                 {"aten::clamp", clamp},
                                                 {"aten::clamp_min", with_number<Unary::kAtLeast>},
                                                 {"aten::clamp_max", with_number<Unary::kAtMost>},
                                                 {"aten::hardtanh", hardtanh},
                                                 {"aten::relu6", relu6}};
  ops.insert(ops.end(), plain_ones.begin(), plain_ones.end());
  return ops;
}

}  // namespace hfta::fusion::cpu
