// Tensors that are known before anything runs: the plan holds them.
#include <cmath>
#include <limits>
#include <optional>

#include "base/checked.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/elements.hpp"
#include "fusion/cpu/strided.hpp"

namespace hfta::fusion::cpu {
namespace {

/// V: double, or std::int64_t of an element that is a whole number.
template <typename V>
V element(const std::byte* memory, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::kFloat64:
      return static_cast<V>(reinterpret_cast<const double*>(memory)[i]);
    case DType::kInt64:
      return static_cast<V>(reinterpret_cast<const std::int64_t*>(memory)[i]);
    case DType::kBool:
      return reinterpret_cast<const std::uint8_t*>(memory)[i] != 0 ? 1 : 0;
    default:
      return static_cast<V>(reinterpret_cast<const float*>(memory)[i]);
  }
}

std::int64_t truncated(std::int64_t value) { return value; }
// A value that does not fit becomes the lowest number, as in this machine's own conversion.
std::int64_t truncated(double value) {
  return exact_integer(std::trunc(value)).value_or(std::numeric_limits<std::int64_t>::min());
}

template <typename V>
void put(std::byte* memory, DType dtype, std::int64_t i, V value) {
  switch (dtype) {
    case DType::kFloat64:
      reinterpret_cast<double*>(memory)[i] = static_cast<double>(value);
      break;
    case DType::kInt64:
      reinterpret_cast<std::int64_t*>(memory)[i] = truncated(value);
      break;
    case DType::kBool:
      reinterpret_cast<std::uint8_t*>(memory)[i] = value != 0 ? 1 : 0;
      break;
    default:
      reinterpret_cast<float*>(memory)[i] = static_cast<float>(value);
  }
}

bool is_whole(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kBool; }

bool known(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt64 || dtype == DType::kBool;
}

// Argument i, or what stands for it.
DType dtype_or(LoweringContext& site, std::size_t i, DType fallback) {
  const auto* given = site.argument<DType>(i);
  const DType dtype = given == nullptr ? fallback : *given;
  if (!known(dtype) || (is_floating(dtype) && dtype != site.b.dtype())) site.fail("another dtype than the model's");
  return dtype;
}

void bind_filled(LoweringContext& site, const Dims& sizes, DType dtype, const Number& value) {
  site.bind(constant_of(site.b, dtype, value).expanded(sizes));
}

// Schema: size, dtype, ...
template <std::int64_t kValue>
void filled_with(LoweringContext& site) {
  bind_filled(site, site.ints(0), dtype_or(site, 1, site.b.dtype()), kValue);
}

// Schema: input, dtype, ...
template <std::int64_t kValue>
void like_with(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  bind_filled(site, x.sizes, dtype_or(site, 1, x.dtype), kValue);
}

// The kind of number that it is.
DType dtype_of(const LoweringContext& site, const Number& number) {
  if (std::holds_alternative<bool>(number)) return DType::kBool;
  return std::holds_alternative<std::int64_t>(number) ? DType::kInt64 : site.b.dtype();
}

// Schema: size, fill_value, dtype, ...
void full(LoweringContext& site) {
  const Number value = site.literal(1);
  bind_filled(site, site.ints(0), dtype_or(site, 2, dtype_of(site, value)), value);
}

// Schema: input, fill_value, dtype, ...
void full_like(LoweringContext& site) {
  const Tensor x = site.tensor(0);
  bind_filled(site, x.sizes, dtype_or(site, 2, x.dtype), site.literal(1));
}

void check_length(const LoweringContext& site, bool fits) {
  if (!fits) site.fail("its bounds and its step make no range, or one that is too long");
}

std::vector<std::int64_t> whole_range(const LoweringContext& site, std::int64_t start, std::int64_t end,
                                      std::int64_t step) {
  const std::optional<std::int64_t> span = checked_sub(end, start);
  check_length(site, span && (*span == 0 || (*span < 0) == (step < 0)));
  check_length(site, step != -1 || *span != std::numeric_limits<std::int64_t>::min());  // this quotient would overflow
  const std::int64_t count = *span / step + (*span % step != 0 ? 1 : 0);
  check_length(site, count <= kMostConstants);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(start + i * step);  // never beyond end
  return values;
}

std::vector<double> real_range(const LoweringContext& site, double start, double end, double step) {
  const double count = std::ceil((end - start) / step);
  check_length(site, count >= 0 && count <= static_cast<double>(kMostConstants));  // a NaN is neither
  std::vector<double> values;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    values.push_back(start + static_cast<double>(i) * step);
  }
  return values;
}

// `bounds`: how many of start, end and step the schema has in front of dtype; end alone if one.
template <int kBounds>
void arange(LoweringContext& site) {
  const Number start = kBounds > 1 ? site.literal(0) : Number(std::int64_t{0});
  const Number end = site.literal(kBounds > 1 ? 1 : 0);
  const Number step = kBounds > 2 ? site.literal(2) : Number(std::int64_t{1});
  const auto bind = [&](DType dtype, const auto& values) {
    site.bind(constant_of(site.b, {static_cast<std::int64_t>(values.size())}, dtype, values));
  };
  const auto integer = [](const Number& number) { return std::get_if<std::int64_t>(&number); };
  if (integer(start) != nullptr && integer(end) != nullptr && integer(step) != nullptr) {
    if (*integer(step) == 0) site.fail("its step is 0");
    return bind(dtype_or(site, kBounds, DType::kInt64),
                whole_range(site, *integer(start), *integer(end), *integer(step)));
  }
  const auto real = [](const Number& number) {
    return std::visit([](auto x) { return static_cast<double>(x); }, number);
  };
  const DType dtype = dtype_or(site, kBounds, site.b.dtype());
  if (!is_floating(dtype)) site.fail("its bounds are fractions, its elements are not");
  if (real(step) == 0) site.fail("its step is 0");
  bind(dtype, real_range(site, real(start), real(end), real(step)));
}

template <typename V>
Tensor filled_constant(Builder& b, const Dims& sizes, DType dtype, const std::vector<V>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) put<V>(bytes.data(), dtype, static_cast<std::int64_t>(i), values[i]);
  return b.constant(sizes, dtype, std::move(bytes));
}

struct ThreeTensors {
  Tensor x, y, out;
};

template <typename V>
void emit_elements(Builder& b, const ThreeTensors& t, const std::function<V(V, V)>& f) {
  const Loops loops = loops_over({t.out, t.x.expanded(t.out.sizes), t.y.expanded(t.out.sizes)});
  const auto memory = [](const Run& run, const Tensor& of) {
    return run.buffers[static_cast<std::size_t>(of.buffer)] + of.offset * size_of(of.dtype);
  };
  b.emit({t.x, t.y, t.out}, [=](const Run& run) {
    for_each_row(nullptr, loops, [&](const std::int64_t* at) {
      for (std::int64_t i = 0; i < loops.sizes.back(); ++i) {
        const V a = element<V>(memory(run, t.x), t.x.dtype, at[1] + i * loops.strides[1].back());
        const V c = element<V>(memory(run, t.y), t.y.dtype, at[2] + i * loops.strides[2].back());
        put<V>(memory(run, t.out), t.out.dtype, at[0] + i * loops.strides[0].back(), f(a, c));
      }
    });
  });
}

}  // namespace

Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<double>& values) {
  return filled_constant(b, sizes, dtype, values);
}

Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<std::int64_t>& values) {
  return filled_constant(b, sizes, dtype, values);
}

Tensor constant_of(Builder& b, DType dtype, const Number& value) {
  if (const auto* real = std::get_if<double>(&value)) return filled_constant<double>(b, {}, dtype, {*real});
  const std::int64_t whole = std::visit([](auto x) { return static_cast<std::int64_t>(x); }, value);
  return filled_constant<std::int64_t>(b, {}, dtype, {whole});
}

Tensor elementwise(LoweringContext& site, DType dtype, const Tensor& x, const Tensor& y, const ElementFunction& f) {
  if (!known(dtype) || !known(x.dtype) || !known(y.dtype)) site.fail("a dtype that nothing is known of");
  const ThreeTensors t{x, y, site.b.fresh(broadcast(x.sizes, y.sizes), dtype)};
  if (is_whole(x.dtype) && is_whole(y.dtype)) {
    emit_elements<std::int64_t>(site.b, t, f.integers);
  } else {
    emit_elements<double>(site.b, t, f.reals);
  }
  return t.out;
}

std::vector<NamedCompiler> constant_ops() {
  return {{"aten::zeros", filled_with<0>},
          {"aten::ones", filled_with<1>},
          {"aten::zeros_like", like_with<0>},
          {"aten::ones_like", like_with<1>},
          {"aten::full", full},
          {"aten::full_like", full_like},
          {"aten::arange", arange<1>},
          {"aten::arange.start", arange<2>},
          {"aten::arange.start_step", arange<3>}};
}

}  // namespace hfta::fusion::cpu
