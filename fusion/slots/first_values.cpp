#include "fusion/slots/first_values.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

double truncated_normal(CountedRandom& random) {
  constexpr double kCut = 2;
  for (;;) {
    const double value = random.normal();
    if (std::abs(value) <= kCut) return value;
  }
}

double draw(const Init& init, CountedRandom& random) {
  switch (init.kind) {
    case Init::Kind::kZeros:
    case Init::Kind::kStored:
      return 0;
    case Init::Kind::kOnes:
      return 1;
    case Init::Kind::kUniform:
      return (2 * random.uniform() - 1) * init.scale;
    case Init::Kind::kNormal:
      return random.normal() * init.scale;
    case Init::Kind::kTruncatedNormal:
      return truncated_normal(random) * init.scale;
    case Init::Kind::kOrthogonal:
    case Init::Kind::kJittered:
      return random.normal();
  }
  return 0;
}

// torch.nn.init.orthogonal_: rows or columns of [size 0, the rest], whichever are fewer, at right angles.
at::Tensor orthogonal(const at::Tensor& normal, double gain) {
  const at::Tensor matrix = normal.reshape({normal.size(0), -1});
  const bool wide = matrix.size(0) < matrix.size(1);
  auto [q, r] = at::linalg_qr(wide ? matrix.t() : matrix);
  q = q * r.diagonal().sign();
  return ((wide ? q.t() : q) * gain).reshape(normal.sizes()).contiguous();
}

at::Tensor jittered(const Weight& weight, const at::Tensor& normal) {
  at::Tensor values = stored_values(weight).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  if (values.numel() < 2) return values;
  return values + normal * (values.std() * weight.init.scale);
}

// Size of the padded dimension that the slot uses.
std::int64_t used_size(const Weight& weight, std::span<const double> hypers) {
  const auto used = static_cast<std::size_t>(weight.padding->used.index);
  const std::int64_t whole = weight.shape.at(weight.padding->dim);
  const double size = used < hypers.size() ? hypers[used] : 0;
  if (size >= 1 && size <= static_cast<double>(whole) && std::floor(size) == size) {
    return static_cast<std::int64_t>(size);
  }
  throw Error(ErrorKind::kInternal,
              fmt::format("{}: found a slot that uses {} of {} elements", weight.name, size, whole));
}

at::Tensor padded(const Weight& weight, CountedRandom random, std::span<const double> hypers) {
  Weight used = weight;
  used.padding.reset();
  used.shape[weight.padding->dim] = used_size(weight, hypers);
  const at::Tensor values = first_values(used, random, hypers);
  at::Tensor all = at::zeros(weight.shape, values.options());
  const auto dim = static_cast<std::int64_t>(weight.padding->dim);
  all.narrow(dim, 0, values.size(dim)).copy_(values);
  return all;
}

}  // namespace

at::Tensor stored_values(const Weight& weight) {
  if (weight.stored == nullptr || weight.stored->shape != weight.model_shape() ||
      static_cast<std::int64_t>(weight.stored->bytes.size()) !=
          bytes_of(weight.model_shape(), weight.stored->dtype, 1)) {
    throw Error(ErrorKind::kInternal, fmt::format("{}: found no stored values of its shape", weight.name));
  }
  auto* const bytes = const_cast<std::byte*>(weight.stored->bytes.data());
  const at::Tensor values = at::from_blob(
      bytes, weight.model_shape(), [held = weight.stored](void*) {},
      at::TensorOptions().dtype(scalar_type(weight.stored->dtype)));
  return weight.pairs ? at::view_as_real(values) : values;
}

at::Tensor first_values(const Weight& weight, CountedRandom random, std::span<const double> hypers) {
  const Init& init = weight.init;
  if (weight.padding) return padded(weight, random, hypers);
  if (init.kind == Init::Kind::kStored) return stored_values(weight);
  at::Tensor values = at::zeros(weight.shape, at::kDouble);
  double* out = values.data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = draw(init, random);
  if (init.kind == Init::Kind::kOrthogonal) values = orthogonal(values, init.scale);
  if (init.kind == Init::Kind::kJittered) values = jittered(weight, values);
  if (init.zero_row >= 0) values.select(0, init.zero_row).zero_();
  return values;
}

}  // namespace hfta::fusion
