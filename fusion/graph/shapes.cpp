#include <fmt/format.h>

#include <algorithm>

#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

void emit_flatten(LayerBuilder& layer) {
  const std::size_t first = layer.dimension("start_dim");
  const std::size_t last = layer.dimension("end_dim");
  if (first > last) {
    layer.fail(fmt::format("start_dim: found {}, wanted at most end_dim = {}", first, last));
  }
  const Shape& input = layer.shape();
  Shape output(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t size = 1;
  for (std::size_t d = first; d <= last; ++d) size *= input[d];
  output.push_back(size);
  output.insert(output.end(), input.begin() + static_cast<std::ptrdiff_t>(last) + 1, input.end());
  layer.call("aten::flatten.using_ints", {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last)}, output);
}

// Sizes of which one may be -1, filled in so that they hold `elements`. Throws "<arg>: found ..." if they cannot.
Shape resolved(const LayerBuilder& layer, const std::string& arg, std::int64_t elements) {
  Shape sizes = layer.integers(arg);
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) layer.fail(fmt::format("{}: found 0, wanted sizes of at least 1, or one -1", arg));
    // Past `elements` the exact product does not matter, and it must not overflow.
    if (size > 0) known = known > elements / size ? elements + 1 : known * size;
  }
  const auto open = std::count(sizes.begin(), sizes.end(), -1);
  if (open > 1) layer.fail(fmt::format("{}: found {} sizes of -1, wanted at most one", arg, open));
  if (known > elements || (open == 1 ? elements % known != 0 : known != elements)) {
    layer.fail(fmt::format("{}: found {} for input {}, wanted sizes of {} elements", arg,
                           to_text(LayerArg(layer.integers(arg))), to_text(layer.shape()), elements));
  }
  std::replace(sizes.begin(), sizes.end(), std::int64_t{-1}, elements / known);
  return sizes;
}

// The batch size is known only when data flow, so it is left for the op to find.
void emit_reshape(LayerBuilder& layer) {
  Shape output = resolved(layer, "shape", element_count(layer.shape()).value());
  output.insert(output.begin(), kBatch);
  layer.call("aten::reshape", {std::vector<std::int64_t>(output)}, output);
}

void emit_unflatten(LayerBuilder& layer) {
  const std::size_t dim = layer.dimension("dim");
  const Shape sizes = resolved(layer, "unflattened_size", layer.shape()[dim]);
  Shape output = layer.shape();
  output.erase(output.begin() + static_cast<std::ptrdiff_t>(dim));
  output.insert(output.begin() + static_cast<std::ptrdiff_t>(dim), sizes.begin(), sizes.end());
  layer.call("aten::unflatten.int", {static_cast<std::int64_t>(dim), sizes}, output);
}

void emit_transpose(LayerBuilder& layer) {
  const std::size_t first = layer.dimension("dim0");
  const std::size_t second = layer.dimension("dim1");
  Shape output = layer.shape();
  std::swap(output[first], output[second]);
  layer.call("aten::transpose.int", {static_cast<std::int64_t>(first), static_cast<std::int64_t>(second)}, output);
}

void emit_add(LayerBuilder& layer) {
  for (std::size_t i = 0; i < layer.joined().size(); ++i) {
    const auto& [name, other] = layer.joined()[i];
    if (layer.shape_of(other) != layer.shape()) {
      layer.wrong_input(fmt::format("that of '{}', {}", name, to_text(layer.shape_of(other))));
    }
    const bool last = i + 1 == layer.joined().size();
    layer.call("aten::add.Tensor", {other}, layer.shape(), last ? "" : fmt::format(".{}", i));
  }
}

void emit_concat(LayerBuilder& layer) {
  const std::size_t dim = layer.dimension("dim");
  std::vector<ValueId> tensors{layer.value()};
  Shape output = layer.shape();
  for (const auto& [name, other] : layer.joined()) {
    Shape theirs = layer.shape_of(other);
    const std::int64_t size = theirs.size() == output.size() ? theirs[dim] : 0;
    if (size > 0) theirs[dim] = layer.shape()[dim];
    if (theirs != layer.shape()) {
      layer.wrong_input(
          fmt::format("that of '{}', {}, but for dimension {}", name, to_text(layer.shape_of(other)), dim));
    }
    output[dim] += size;
    tensors.push_back(other);
  }
  layer.call_with("aten::cat", {tensors, static_cast<std::int64_t>(dim)}, output);
}

ArgRule dim(const char* name, std::optional<LayerArg> fallback = std::nullopt) {
  return {.name = name, .fallback = std::move(fallback)};
}

ArgRule sizes(const char* name) { return {.name = name, .type = ArgType::kInts, .count = 0, .least = -1}; }

}  // namespace

std::vector<LayerKind> shape_kinds() {
  const ArgRule other{.name = "other", .type = ArgType::kName};
  return {{"identity", {}, [](LayerBuilder&) {}},
          {"flatten", {dim("start_dim", std::int64_t{1}), dim("end_dim", std::int64_t{-1})}, emit_flatten},
          {"unflatten", {dim("dim"), sizes("unflattened_size")}, emit_unflatten},
          {"reshape", {sizes("shape")}, emit_reshape},
          {"transpose", {dim("dim0"), dim("dim1")}, emit_transpose},
          {"add", {other}, emit_add},
          {"concat", {other, dim("dim", std::int64_t{1})}, emit_concat}};
}

}  // namespace hfta::fusion
