// Elements of one tensor or another, and the bool tensors that say which. Masks are small and made of anything; the
// loops that make them are plain.
#include <algorithm>
#include <functional>

#include "fusion/cpu/kernels/widen.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/common.hpp"
#include "fusion/cpu/ops/elements.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

// ---- Choosing ----

struct Choice {
  Tensor mask, yes, no, y;  // all have y's sizes; some may be repeated
};

template <typename T>
void emit_choice(Builder& b, const Choice& c) {
  const Loops loops = loops_over({c.y, c.mask, c.yes, c.no});
  const std::int64_t n = loops.sizes.back();
  const std::int64_t sy = loops.strides[0].back(), sm = loops.strides[1].back(), s1 = loops.strides[2].back(),
                     s0 = loops.strides[3].back();
  b.emit({c.mask, c.yes, c.no, c.y}, [=](const Run& run) {
    for_each_row(run.team, loops, [&](const std::int64_t* at) {
      const std::uint8_t* const m = run.at<std::uint8_t>(c.mask) + at[1];
      const T* const yes = run.at<T>(c.yes) + at[2];
      const T* const no = run.at<T>(c.no) + at[3];
      T* const y = run.at<T>(c.y) + at[0];
      for (std::int64_t i = 0; i < n; ++i) y[i * sy] = m[i * sm] != 0 ? yes[i * s1] : no[i * s0];
    });
  });
}

// dx += dy where the mask is `wanted`.
template <typename T>
void contribute_chosen(Builder& b, const Tensor& x, const Tensor& mask, const Tensor& dy, bool wanted) {
  const Builder::Part part = b.contribute(x);
  const Loops loops = loops_over({dy, mask, part.tensor});
  const std::int64_t n = loops.sizes.back();
  const std::int64_t sy = loops.strides[0].back(), sm = loops.strides[1].back(), sx = loops.strides[2].back();
  b.emit({dy, mask, part.tensor}, [=](const Run& run) {
    for_each_row(nullptr, loops, [&](const std::int64_t* at) {
      const std::uint8_t* const m = run.at<std::uint8_t>(mask) + at[1];
      const T* const from = run.at<T>(dy) + at[0];
      T* const to = run.at<T>(part.tensor) + at[2];
      for (std::int64_t i = 0; i < n; ++i) {
        const T d = (m[i * sm] != 0) == wanted ? from[i * sy] : T{0};
        to[i * sx] = part.add ? to[i * sx] + d : d;
      }
    });
  });
}

void choose(LoweringContext& site, const Tensor& mask, const Tensor& yes, const Tensor& no) {
  Builder& b = site.b;
  if (mask.dtype != DType::kBool) site.fail("its mask is not bool");
  if (yes.dtype != no.dtype || (yes.dtype != b.dtype() && yes.dtype != DType::kInt64))
    site.fail("its inputs are not alike");
  const Dims sizes = broadcast(mask.sizes, broadcast(yes.sizes, no.sizes));
  const Choice c{mask.expanded(sizes), yes.expanded(sizes), no.expanded(sizes), b.fresh(sizes, yes.dtype)};
  site.bind(c.y);
  if (yes.dtype == DType::kInt64) return emit_choice<std::int64_t>(b, c);
  typed(b.dtype(), [&]<typename T>() {
    emit_choice<T>(b, c);
    b.differentiable({yes, no}, {c.y}, [=, &b] {
      const auto dy = b.gradient(c.y);
      if (!dy) return;
      if (b.wants_gradient(c.yes)) contribute_chosen<T>(b, c.yes, c.mask, *dy, true);
      if (b.wants_gradient(c.no)) contribute_chosen<T>(b, c.no, c.mask, *dy, false);
    });
  });
}

// Argument 2 as an element of `dtype`, which a fraction is no integer's.
Tensor filling(LoweringContext& site, DType dtype) {
  const Number value = site.literal(2);
  if (std::holds_alternative<double>(value) && !is_floating(dtype)) site.fail("a fraction among integers");
  return constant_of(site.b, dtype, value);
}

// Schema: input, mask, value.
void masked_fill(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  choose(site, site.tensor(1), filling(site, x.dtype), x);
}

// Schema: condition, input, other.
void where(LoweringContext& site) { choose(site, site.tensor(0), site.tensor(1), site.tensor(2)); }

// Schema: input, diagonal.
template <bool kLower>
void triangle(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t rows = x.size(-2), columns = x.size(-1), diagonal = site.integer(1);
  if (product(Dims{rows, columns}) > kMostConstants) site.fail("its matrix is too large");
  std::vector<std::int64_t> inside;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      inside.push_back((kLower ? c - r <= diagonal : c - r >= diagonal) ? 1 : 0);
    }
  }
  const Tensor mask = constant_of(site.b, {rows, columns}, DType::kBool, inside);
  if (x.dtype != DType::kBool) return choose(site, mask, x, constant_of(site.b, x.dtype, std::int64_t{0}));
  site.bind(elementwise(site, DType::kBool, x, mask, {std::multiplies<double>(), std::multiplies<std::int64_t>()}));
}

// ---- Comparing ----

// The operand that x is compared with. A number gets x's own kind, as in ATen. Comparisons that ATen makes in a third
// dtype are not compiled.
Tensor compared_with(LoweringContext& site, const Tensor& x) {
  if (!site.is_number(1)) return site.tensor(1);
  const Number number = site.literal(1);
  if (is_floating(x.dtype)) return constant_of(site.b, x.dtype, number);
  if (std::holds_alternative<double>(number)) site.fail("it compares integers with a fraction");
  return constant_of(site.b, DType::kInt64, number);
}

// Schema: input, other, a tensor or a number.
template <template <typename> typename kRelation>
void compare(LoweringContext& site) {
  const Tensor x = site.tensor(0), other = compared_with(site, x);
  const bool mixed =
      (x.dtype == DType::kInt64 && is_floating(other.dtype)) || (other.dtype == DType::kInt64 && is_floating(x.dtype));
  if (mixed) site.fail("it compares integers with fractions");
  site.bind(
      elementwise(site, DType::kBool, x, other,
                  {[](double a, double b) { return kRelation<double>()(a, b) ? 1.0 : 0.0; },
                   [](std::int64_t a, std::int64_t b) -> std::int64_t { return kRelation<std::int64_t>()(a, b); }}));
}

// Schema: input.
void negate(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  if (x.dtype != DType::kBool) site.fail("its input is not bool");
  site.bind(elementwise(site, DType::kBool, x, x,
                        {[](double a, double) { return a == 0 ? 1.0 : 0.0; },
                         [](std::int64_t a, std::int64_t) -> std::int64_t { return a == 0 ? 1 : 0; }}));
}

template <typename Stored>
Tensor widened(Builder& b, const Tensor& x) {
  Tensor y = b.fresh(x.sizes);
  y.strides = x.strides;
  typed(b.dtype(), [&]<typename T>() {
    const Kernel kernel = [=](const Run& run) { widen(run.team, run.at<Stored>(x), run.at<T>(y), x.numel()); };
    b.emit({x, y}, kernel);
    if (b.is_weight(x)) b.recomputable(y, {x, y}, kernel, RecomputeCost::kWidening);
  });
  return y;
}

// x in the type that is computed in, with x's order in memory; undefined if x's numbers are not narrow. What is made of
// a weight is not kept for the backward: a base that is held in a narrow type would otherwise be there in the wide one.
Tensor widened(Builder& b, const Tensor& x) {
  if (!x.dense()) return {};
  switch (x.dtype) {
    case DType::kFloat16:
      return widened<simd::Half>(b, x);
    case DType::kBFloat16:
      return widened<simd::Bfloat16>(b, x);
    case DType::kInt8:
      return widened<std::int8_t>(b, x);
    case DType::kUInt8:
      return widened<std::uint8_t>(b, x);
    default:
      return {};
  }
}

void convert(LoweringContext& site, DType dtype) {
  const Tensor x = site.tensor(0);
  if (dtype == x.dtype) return site.bind(x);
  if (dtype == site.b.dtype() && !site.b.wants_gradient(x)) {
    if (const Tensor y = widened(site.b, x); y.defined()) return site.bind(y);
  }
  if (is_floating(dtype) && dtype != site.b.dtype()) site.fail("another dtype than the model's");
  if (site.b.wants_gradient(x)) site.fail("it turns what has a gradient into something else");
  site.bind(elementwise(site, dtype, x, x,
                        {[](double a, double) { return a; }, [](std::int64_t a, std::int64_t) { return a; }}));
}

// Schema: input, at kAt the dtype, which may be None, and at kCopy whether the result is always a copy; a device
// besides is always the array's.
template <std::size_t kAt, std::size_t kCopy>
void to_dtype(LoweringContext& site) {
  const auto* dtype = site.argument<DType>(kAt);
  const auto* copy = kCopy < site.node().args.size() ? site.argument<bool>(kCopy) : nullptr;
  const Tensor x = site.tensor(0);
  const bool converts = dtype != nullptr && *dtype != x.dtype;
  if (!converts && copy != nullptr && *copy) return site.bind(copy_of(site.b, x));
  convert(site, converts ? *dtype : x.dtype);
}

// Schema: input, other, ...
void to_other(LoweringContext& site) { convert(site, site.tensor(1).dtype); }

}  // namespace

std::vector<NamedCompiler> choose_ops() {
  std::vector<NamedCompiler> ops = {{"aten::masked_fill.Scalar", masked_fill},
                                    {"aten::where.self", where},
                                    {"aten::tril", triangle<true>},
                                    {"aten::triu", triangle<false>},
                                    {"aten::logical_not", negate},
                                    {"aten::bitwise_not", negate},
                                    {"aten::to.dtype", to_dtype<1, 3>},
                                    {"aten::to.dtype_layout", to_dtype<1, 6>},
                                    {"aten::to.device", to_dtype<2, 4>},
                                    {"aten::to.other", to_other},
                                    {"aten::type_as", to_other}};
  const auto relation = [&](const std::string& name, Compile compile) {
    for (const char* overload : {".Scalar", ".Tensor"}) ops.push_back({"aten::" + name + overload, compile});
  };
  relation("eq", compare<std::equal_to>);
  relation("ne", compare<std::not_equal_to>);
  relation("lt", compare<std::less>);
  relation("le", compare<std::less_equal>);
  relation("gt", compare<std::greater>);
  relation("ge", compare<std::greater_equal>);
  return ops;
}

}  // namespace hfta::fusion::cpu
