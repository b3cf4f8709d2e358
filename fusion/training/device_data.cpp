// Data where steps take them from.
#include <ATen/ATen.h>

#include <algorithm>

#include "fusion/epochs.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

constexpr std::size_t kAlignment = 64;  // LibTorch's own, on which bits of some products depend

std::vector<std::int64_t> sizes_of(const Field& field, std::int64_t samples) {
  std::vector<std::int64_t> sizes = {samples};
  sizes.insert(sizes.end(), field.shape.begin(), field.shape.end());
  return sizes;
}

// A GPU widens these to the bits that the host would make.
bool same_bits_on_gpu(NumberType type) { return dtype_of(type).has_value() && type.width < sizeof(std::int64_t); }

// `samples` at a time, so that data in a file, or to be converted, are never in memory twice.
template <typename Block>
void copy_in_blocks(const Field& field, const at::Tensor& all, at::ScalarType host_type, const Block& block) {
  constexpr std::int64_t kNumbers = std::int64_t{1} << 22;
  const std::int64_t most = std::max<std::int64_t>(1, kNumbers / std::max<std::int64_t>(1, field.stride()));
  for (std::int64_t begin = 0; begin < all.size(0); begin += most) {
    const std::int64_t end = std::min(begin + most, all.size(0));
    const at::Tensor host = at::empty(sizes_of(field, end - begin), host_type);
    block(begin, end, static_cast<std::byte*>(host.data_ptr()));
    all.narrow(0, begin, end - begin).copy_(host);
  }
}

SampleArray on_cpu(const Field& field, std::int64_t size, at::ScalarType type, bool compact) {
  const std::optional<DType> stored = dtype_of(field.data.type());
  const bool same = stored && scalar_type(*stored) == type;
  if (field.data.memory() == nullptr || compact || (same && !field.plain())) return {field, size, type};
  const bool aligned = reinterpret_cast<std::uintptr_t>(field.data.memory()) % kAlignment == 0;
  if (same && aligned) {
    // The tensor keeps the numbers alive; nobody writes to samples.
    return at::from_blob(
        const_cast<std::byte*>(field.data.memory()), sizes_of(field, size), [keep = field.data](void*) {}, type);
  }
  const at::Tensor all = at::empty(sizes_of(field, size), type);
  copy_in_blocks(field, all, scalar_type(field.dtype()), [&](std::int64_t begin, std::int64_t end, std::byte* out) {
    field.gather(begin, end, field.dtype(), out);
  });
  return all;
}

SampleArray on_gpu(const Field& field, std::int64_t size, at::ScalarType type, bool compact, const at::Device& device) {
  const bool as_stored = compact && same_bits_on_gpu(field.data.type());
  const at::ScalarType host_type = scalar_type(as_stored ? *dtype_of(field.data.type()) : field.dtype());
  const auto options = at::TensorOptions().dtype(as_stored ? host_type : type).device(device);
  const at::Tensor all = at::empty(sizes_of(field, size), options);
  copy_in_blocks(field, all, host_type, [&](std::int64_t begin, std::int64_t end, std::byte* out) {
    as_stored ? field.gather_stored(begin, end, out) : field.gather(begin, end, field.dtype(), out);
  });
  return {all, type};
}

SampleArray to_device(const Field& field, std::int64_t size, at::ScalarType type, const at::Device& device) {
  const bool compact = field.data.type().width < c10::elementSize(type);
  return device.is_cpu() ? on_cpu(field, size, type, compact) : on_gpu(field, size, type, compact, device);
}

}  // namespace

DeviceData to_device(const Dataset& data, const Graph& graph, const Recipe& recipe, const at::Device& device) {
  DeviceData out;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    const Value& wanted = graph.values[static_cast<std::size_t>(graph.inputs.at(i))];
    out.inputs.push_back(to_device(data.inputs[i], data.size, scalar_type(wanted.dtype), device));
  }
  const bool indices = data.target.dtype() == DType::kInt64;
  out.target = to_device(data.target, data.size, indices ? at::kLong : scalar_type(recipe.dtype), device);
  out.size = data.size;
  return out;
}

}  // namespace hfta::fusion
