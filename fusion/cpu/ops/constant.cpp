// Tensors that are known before anything runs: the plan holds them.
#include <cmath>

#include "fusion/cpu/kernels/strided.hpp"
#include "fusion/cpu/ops.hpp"
#include "fusion/cpu/ops/elements.hpp"

namespace hfta::fusion::cpu {
namespace {

double element(const std::byte* memory, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::kFloat64:
      return reinterpret_cast<const double*>(memory)[i];
    case DType::kInt64:
      return static_cast<double>(reinterpret_cast<const std::int64_t*>(memory)[i]);
    case DType::kBool:
      return reinterpret_cast<const std::uint8_t*>(memory)[i] != 0 ? 1 : 0;
    default:
      return static_cast<double>(reinterpret_cast<const float*>(memory)[i]);
  }
}

// A conversion of what int64 does not hold would be undefined; torch's is as arbitrary.
std::int64_t whole(double value) {
  constexpr double kBeyond = 9223372036854775808.0;
  return value >= -kBeyond && value < kBeyond ? static_cast<std::int64_t>(value) : std::int64_t{INT64_MIN};
}

void put(std::byte* memory, DType dtype, std::int64_t i, double value) {
  switch (dtype) {
    case DType::kFloat64:
      reinterpret_cast<double*>(memory)[i] = value;
      break;
    case DType::kInt64:
      reinterpret_cast<std::int64_t*>(memory)[i] = whole(value);
      break;
    case DType::kBool:
      reinterpret_cast<std::uint8_t*>(memory)[i] = value != 0 ? 1 : 0;
      break;
    default:
      reinterpret_cast<float*>(memory)[i] = static_cast<float>(value);
  }
}

bool known(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt64 || dtype == DType::kBool;
}

// Argument i, or what stands for it.
DType dtype_or(Site& site, std::size_t i, DType fallback) {
  const auto* given = std::get_if<DType>(&site.node().args.at(i));
  const DType dtype = given == nullptr ? fallback : *given;
  if (!known(dtype) || (is_floating(dtype) && dtype != site.b.dtype())) site.fail("another dtype than the model's");
  return dtype;
}

void bind_filled(Site& site, const Dims& sizes, DType dtype, double value) {
  site.bind(constant_of(site.b, {}, dtype, {value}).expanded(sizes));
}

// Schema: size, dtype, ...
template <int kValue>
void filled_with(Site& site) {
  bind_filled(site, site.ints(0), dtype_or(site, 1, site.b.dtype()), kValue);
}

// Schema: input, dtype, ...
template <int kValue>
void like_with(Site& site) {
  const Tensor x = site.tensor(0);
  bind_filled(site, x.sizes, dtype_or(site, 1, x.dtype), kValue);
}

// The kind of number that argument i is.
DType dtype_of(Site& site, std::size_t i) {
  const Arg& arg = site.node().args.at(i);
  if (std::holds_alternative<bool>(arg)) return DType::kBool;
  if (std::holds_alternative<std::int64_t>(arg)) return DType::kInt64;
  const auto* id = std::get_if<ValueId>(&arg);
  const bool counts = id != nullptr && site.b.number(*id) && std::holds_alternative<std::int64_t>(*site.b.number(*id));
  return counts ? DType::kInt64 : site.b.dtype();
}

double value_of(Site& site, std::size_t i) {
  const auto* flag = std::get_if<bool>(&site.node().args.at(i));
  return flag != nullptr ? static_cast<double>(*flag) : site.number(i);
}

// Schema: size, fill_value, dtype, ...
void full(Site& site) { bind_filled(site, site.ints(0), dtype_or(site, 2, dtype_of(site, 1)), value_of(site, 1)); }

// Schema: input, fill_value, dtype, ...
void full_like(Site& site) {
  const Tensor x = site.tensor(0);
  bind_filled(site, x.sizes, dtype_or(site, 2, x.dtype), value_of(site, 1));
}

// `bounds`: how many of start, end and step the schema has in front of dtype; end alone if one.
template <int kBounds>
void arange(Site& site) {
  DType dtype = DType::kInt64;
  for (std::size_t i = 0; i < kBounds; ++i) {
    if (dtype_of(site, i) != DType::kInt64) dtype = site.b.dtype();
  }
  const double start = kBounds > 1 ? site.number(0) : 0, end = site.number(kBounds > 1 ? 1 : 0),
               step = kBounds > 2 ? site.number(2) : 1;
  if (step == 0) site.fail("its step is 0");
  const double steps = std::ceil((end - start) / step);
  if (!(steps < static_cast<double>(kMostConstants))) site.fail("it has too many numbers");
  const auto count = static_cast<std::int64_t>(std::max(0.0, steps));
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(start + static_cast<double>(i) * step);
  site.bind(constant_of(site.b, {count}, dtype_or(site, kBounds, dtype), values));
}

}  // namespace

Tensor constant_of(Builder& b, const Dims& sizes, DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) put(bytes.data(), dtype, static_cast<std::int64_t>(i), values[i]);
  return b.constant(sizes, dtype, std::move(bytes));
}

Tensor elementwise(Site& site, DType dtype, const Tensor& x, const Tensor& y, std::function<double(double, double)> f) {
  if (!known(dtype) || !known(x.dtype) || !known(y.dtype)) site.fail("a dtype that nothing is known of");
  const Dims sizes = broadcast(x.sizes, y.sizes);
  Tensor out = site.b.fresh(sizes, dtype);
  const Loops loops = loops_over({out, x.expanded(sizes), y.expanded(sizes)});
  const auto memory = [](const Run& run, const Tensor& t) {
    return run.buffers[static_cast<std::size_t>(t.buffer)] + t.offset * size_of(t.dtype);
  };
  site.b.emit({x, y, out}, [=](const Run& run) {
    for_each_row(loops, [&](const std::int64_t* at) {
      for (std::int64_t i = 0; i < loops.sizes.back(); ++i) {
        const double a = element(memory(run, x), x.dtype, at[1] + i * loops.strides[1].back());
        const double b = element(memory(run, y), y.dtype, at[2] + i * loops.strides[2].back());
        put(memory(run, out), dtype, at[0] + i * loops.strides[0].back(), f(a, b));
      }
    });
  });
  return out;
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
