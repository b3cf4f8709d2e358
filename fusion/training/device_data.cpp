// Data where steps take them from.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/epochs.hpp"
#include "fusion/graph/sizes.hpp"
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

// Numbers that take less room as they are stored than as `type`.
bool is_compact(const Field& field, at::ScalarType type) { return field.data.type().width < c10::elementSize(type); }

// Whether a GPU keeps them so.
bool as_stored_on_gpu(const Field& field, at::ScalarType type) {
  return is_compact(field, type) && same_bits_on_gpu(field.data.type());
}

at::ScalarType type_on_gpu(const Field& field, at::ScalarType type) {
  return as_stored_on_gpu(field, type) ? scalar_type(*dtype_of(field.data.type())) : type;
}

SampleArray on_gpu(const Field& field, std::int64_t size, at::ScalarType type, const at::Device& device) {
  const bool as_stored = as_stored_on_gpu(field, type);
  const at::ScalarType host_type = as_stored ? type_on_gpu(field, type) : scalar_type(field.dtype());
  const auto options = at::TensorOptions().dtype(type_on_gpu(field, type)).device(device);
  const at::Tensor all = at::empty(sizes_of(field, size), options);
  copy_in_blocks(field, all, host_type, [&](std::int64_t begin, std::int64_t end, std::byte* out) {
    as_stored ? field.gather_stored(begin, end, out) : field.gather(begin, end, field.dtype(), out);
  });
  return {all, type};
}

SampleArray to_device(const Field& field, std::int64_t size, at::ScalarType type, const at::Device& device) {
  return device.is_cpu() ? on_cpu(field, size, type, is_compact(field, type)) : on_gpu(field, size, type, device);
}

at::ScalarType input_type(const Graph& graph, std::size_t input) {
  return scalar_type(graph.values[static_cast<std::size_t>(graph.inputs.at(input))].dtype);
}

at::ScalarType target_type(const Dataset& data, const Recipe& recipe) {
  return data.target.dtype() == DType::kInt64 ? at::kLong : scalar_type(recipe.dtype);
}

// A program that embeds this makes fields of its own.
void check_holds(const Field& field, std::int64_t size) {
  const SampleRows& rows = field.rows;
  const bool negative = std::any_of(field.shape.begin(), field.shape.end(), [](std::int64_t n) { return n < 0; });
  if (negative || !checked_elements(field.shape, 1)) {
    throw Error(ErrorKind::kConfig, fmt::format("data: {}: found samples of shape [{}], wanted what a machine can hold",
                                                printable(field.name), fmt::join(field.shape, ", ")));
  }
  const std::int64_t stride = field.stride(), step = rows.step > 0 ? rows.step : stride;
  std::int64_t listed = size, earliest = 0, last = size - 1;
  if (rows.chosen != nullptr) {
    listed = std::min(size, std::ssize(*rows.chosen));
    last = -1;
    for (const std::int64_t row : *rows.chosen) {
      earliest = std::min(earliest, row);
      last = std::max(last, row);
    }
  }
  if (rows.first < 0 || rows.step < 0 || earliest < 0) {
    throw Error(ErrorKind::kConfig,
                fmt::format("data: {}: found rows from {} on, {} apart, the first chosen one {}; wanted none below 0",
                            printable(field.name), rows.first, rows.step, earliest));
  }
  const std::int64_t room = rows.first < field.data.size() ? field.data.size() - rows.first - stride : -stride;
  const bool fits = last < 0 || listed == 0 || (room >= 0 && (step == 0 || last <= room / step));
  if (listed == size && fits) return;
  throw Error(ErrorKind::kConfig, fmt::format("data: {}: found {} numbers, wanted {} samples of {}",
                                              printable(field.name), field.data.size(), size, stride));
}

void check_holds(const Dataset& data, std::size_t inputs, bool labelled) {
  if (data.size < 0) throw Error(ErrorKind::kConfig, fmt::format("data: found {} samples", data.size));
  if (data.inputs.size() > inputs) {
    throw Error(ErrorKind::kConfig,
                fmt::format("data: found {} inputs, the model takes {}", data.inputs.size(), inputs));
  }
  for (const Field& input : data.inputs) check_holds(input, data.size);
  if (labelled) check_holds(data.target, data.size);
}

}  // namespace

DeviceData to_device(const Dataset& data, const Graph& graph, const Recipe& recipe, const at::Device& device) {
  check_holds(data, graph.inputs.size(), info_of(recipe.loss).targets != Targets::kNone);
  DeviceData out;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    out.inputs.push_back(to_device(data.inputs[i], data.size, input_type(graph, i), device));
  }
  if (info_of(recipe.loss).targets != Targets::kNone) {
    out.target = to_device(data.target, data.size, target_type(data, recipe), device);
  }
  out.size = data.size;
  return out;
}

std::int64_t device_bytes(const Dataset& data, const Graph& graph, const Recipe& recipe, const at::Device& device) {
  if (device.is_cpu()) return 0;
  const auto bytes_of = [&](const Field& field, at::ScalarType type) {
    return data.size * field.stride() * static_cast<std::int64_t>(c10::elementSize(type_on_gpu(field, type)));
  };
  const bool labelled = info_of(recipe.loss).targets != Targets::kNone;
  std::int64_t bytes = labelled ? bytes_of(data.target, target_type(data, recipe)) : 0;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) bytes += bytes_of(data.inputs[i], input_type(graph, i));
  return bytes;
}

}  // namespace hfta::fusion
