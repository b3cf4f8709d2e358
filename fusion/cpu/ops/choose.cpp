// Elements of one tensor or another, and the bool tensors that say which. Masks are small and made of anything; the
// loops that make them are plain.
#include <algorithm>
#include <cmath>

#include "fusion/cpu/kernels/strided.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/elements.hpp"

namespace hfta::fusion::cpu {
namespace {

// ---- Choosing ----

struct Choice {
  Tensor mask, yes, no, y;  // of y's sizes, which may be repeated
};

template <typename T>
void emit_choice(Builder& b, const Choice& c) {
  const Loops loops = loops_over({c.y, c.mask, c.yes, c.no});
  const std::int64_t n = loops.sizes.back();
  const std::int64_t sy = loops.strides[0].back(), sm = loops.strides[1].back(), s1 = loops.strides[2].back(),
                     s0 = loops.strides[3].back();
  b.emit({c.mask, c.yes, c.no, c.y}, [=](const Run& run) {
    for_each_row(loops, [&](const std::int64_t* at) {
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
    for_each_row(loops, [&](const std::int64_t* at) {
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

void choose(Site& site, const Tensor& mask, const Tensor& yes, const Tensor& no) {
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

// Schema: input, mask, value.
void masked_fill(Site& site) {
  const Tensor x = site.tensor(0);
  choose(site, site.tensor(1), constant_of(site.b, {}, x.dtype, {site.number(2)}), x);
}

// Schema: condition, input, other.
void where(Site& site) { choose(site, site.tensor(0), site.tensor(1), site.tensor(2)); }

// Schema: input, diagonal.
template <bool kLower>
void triangle(Site& site) {
  const Tensor x = site.tensor(0);
  const std::int64_t rows = x.size(-2), columns = x.size(-1), diagonal = site.integer(1);
  if (elements(Dims{rows, columns}) > kMostConstants) site.fail("its matrix is too large");
  std::vector<double> inside;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) inside.push_back(kLower ? c - r <= diagonal : c - r >= diagonal);
  }
  const Tensor mask = constant_of(site.b, {rows, columns}, DType::kBool, inside);
  if (x.dtype != DType::kBool) return choose(site, mask, x, constant_of(site.b, {}, x.dtype, {0}));
  site.bind(elementwise(site, DType::kBool, x, mask, [](double a, double b) { return a * b; }));
}

// ---- Comparing ----

using Compare = double (*)(double, double);

// Schema: input, other, a tensor or a number.
template <Compare kCompare>
void compare(Site& site) {
  const Tensor x = site.tensor(0);
  const Tensor other = site.is_number(1) ? constant_of(site.b, {}, DType::kFloat64, {site.number(1)}) : site.tensor(1);
  site.bind(elementwise(site, DType::kBool, x, other, kCompare));
}

template <typename Relation>
double related(double a, double b) {
  return Relation()(a, b) ? 1 : 0;
}

// Schema: input.
void negate(Site& site) {
  const Tensor x = site.tensor(0);
  if (x.dtype != DType::kBool) site.fail("its input is not bool");
  site.bind(elementwise(site, DType::kBool, x, x, [](double a, double) { return a == 0 ? 1.0 : 0.0; }));
}

// Schema: input, dtype, ...
void to_dtype(Site& site) {
  const Tensor x = site.tensor(0);
  const auto* dtype = std::get_if<DType>(&site.node().args.at(1));
  if (dtype == nullptr || *dtype == x.dtype) return site.bind(x);
  if (is_floating(*dtype) && *dtype != site.b.dtype()) site.fail("another dtype than the model's");
  if (site.b.wants_gradient(x)) site.fail("it turns what has a gradient into something else");
  site.bind(elementwise(site, *dtype, x, x, [](double a, double) { return a; }));
}

}  // namespace

std::vector<NamedCompiler> choose_ops() {
  std::vector<NamedCompiler> ops = {{"aten::masked_fill.Scalar", masked_fill},
                                    {"aten::where.self", where},
                                    {"aten::tril", triangle<true>},
                                    {"aten::triu", triangle<false>},
                                    {"aten::logical_not", negate},
                                    {"aten::bitwise_not", negate},
                                    {"aten::to.dtype", to_dtype}};
  const auto relation = [&](const std::string& name, Compile compile) {
    for (const char* overload : {".Scalar", ".Tensor"}) ops.push_back({"aten::" + name + overload, compile});
  };
  relation("eq", compare<related<std::equal_to<double>>>);
  relation("ne", compare<related<std::not_equal_to<double>>>);
  relation("lt", compare<related<std::less<double>>>);
  relation("le", compare<related<std::less_equal<double>>>);
  relation("gt", compare<related<std::greater<double>>>);
  relation("ge", compare<related<std::greater_equal<double>>>);
  return ops;
}

}  // namespace hfta::fusion::cpu
