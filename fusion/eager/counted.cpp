#include "fusion/eager/counted.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numbers>

namespace hfta::fusion {
namespace {

std::vector<std::int64_t> with_slots(std::vector<std::int64_t> sizes, const OpCall& call) {
  if (call.slots() > 0) sizes.insert(sizes.begin(), call.slots());
  return sizes;
}

// Numbers are drawn in float or double, and then become what is wanted.
at::TensorOptions drawn(const at::TensorOptions& like) {
  const at::ScalarType part = c10::toRealValueType(like.dtype().toScalarType());
  return like.dtype(part == at::kDouble ? at::kDouble : at::kFloat);
}

// `draw` gives real numbers of some sizes; a complex number is two of them.
template <typename Draw>
at::Tensor in_type_of(const at::TensorOptions& like, std::vector<std::int64_t> sizes, Draw draw) {
  const at::ScalarType type = like.dtype().toScalarType();
  if (!at::isComplexType(type)) return draw(sizes).to(type);
  sizes.push_back(2);
  return at::view_as_complex(draw(sizes));
}

std::uint32_t node_of(const OpCall& call) { return static_cast<std::uint32_t>(call.index()); }

}  // namespace

at::Tensor counted_masks(const OpCall& call, std::vector<std::int64_t> sizes, const SlotNumbers& rates,
                         const at::TensorOptions& like) {
  return call.context()
      .numbers.dropout_masks(with_slots(std::move(sizes), call), rates, node_of(call), drawn(like))
      .to(like.dtype().toScalarType());
}

at::Tensor counted_uniform(const OpCall& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  return in_type_of(like, with_slots(std::move(sizes), call), [&](at::IntArrayRef all) {
    return call.context().numbers.uniforms(all, node_of(call), drawn(like));
  });
}

at::Tensor counted_normal(const OpCall& call, std::vector<std::int64_t> sizes, const at::TensorOptions& like) {
  const at::Tensor normal = in_type_of(like, with_slots(std::move(sizes), call), [&](at::IntArrayRef all) {
    return call.context().numbers.normals(all, node_of(call), drawn(like));
  });
  return normal.is_complex() ? normal * std::numbers::sqrt2 / 2 : normal;
}

at::Tensor beside(const SlotNumbers& per_slot, const OpCall& call, std::int64_t dim, const at::TensorOptions& like) {
  const at::Tensor there = per_slot.as(like);
  if (call.slots() == 0) return there.squeeze();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::max<std::int64_t>(dim, 1)), 1);
  sizes[0] = call.slots();
  return there.view(sizes);
}

std::vector<std::int64_t> slot_sizes(const at::Tensor& value, const OpCall& call) {
  return value.sizes().slice(call.slots() > 0 ? 1 : 0).vec();
}

}  // namespace hfta::fusion
