// Ops that count dimensions: the slots' comes first, so counts move by one.
#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "fusion/eager/batching_rules.hpp"

namespace hfta::fusion {
namespace {

// Gives a view where strides allow, else a copy: layouts inside an array are not always those that the model was
// written for.
std::vector<at::Tensor> reshape(const OpCall& call) {
  const at::Tensor x = call.tensor(0);
  std::vector<std::int64_t> sizes = call.ints(1);
  if (call.slots() == 0) return {x.reshape(sizes)};
  // "As many as are left" counts one slot's elements.
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    const std::int64_t known = -std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    if (known > 0) *open = x.numel() / call.slots() / known;
  }
  sizes.insert(sizes.begin(), call.slots());
  return {x.reshape(sizes)};
}

// Formats of images count the dimensions of one slot's tensor; all slots' images lie row-major.
std::vector<at::Tensor> clone(const OpCall& call) {
  const bool keeps = call.is_none(1) || call.integer(1) == static_cast<std::int64_t>(at::MemoryFormat::Preserve);
  return {call.tensor(0).clone(keeps ? at::MemoryFormat::Preserve : at::MemoryFormat::Contiguous)};
}

// Another format than that of rows is a copy.
std::vector<at::Tensor> contiguous(const OpCall& call) {
  const auto rows = static_cast<std::int64_t>(at::MemoryFormat::Contiguous);
  if (!call.is_none(1) && call.integer(1) != rows) return clone(call);
  return {call.tensor(0).contiguous()};
}

std::vector<at::Tensor> permute(const OpCall& call) {
  std::vector<std::int64_t> dims = call.ints(1);
  for (std::int64_t& dim : dims) dim += dim >= 0 ? 1 : 0;
  dims.insert(dims.begin(), 0);
  return {call.tensor(0).permute(dims)};
}

// ATen passes over tensors of shape [0], whatever the others' (an empty cache begins so); slots must not hide them.
std::vector<at::Tensor> concatenate(const OpCall& call) {
  std::vector<at::Tensor> parts = call.tensors(0);
  const auto empty = [](const at::Tensor& t) { return t.dim() == 2 && t.size(1) == 0; };
  if (!std::all_of(parts.begin(), parts.end(), empty)) std::erase_if(parts, empty);
  const std::int64_t dim = call.integer(1);
  return {at::cat(parts, dim >= 0 ? dim + 1 : dim)};
}

}  // namespace

std::vector<BatchingRule> shape_rules() {
  std::vector<BatchingRule> rules;
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int", "aten::stack", "aten::unflatten.int",
                         "aten::unsqueeze", "aten::squeeze.dim", "aten::select.int", "aten::slice.Tensor",
                         "aten::narrow", "aten::unbind.int", "aten::glu", "aten::cumsum", "aten::cumsum_"}) {
    rules.push_back({op, "shape", {}, {1}});
  }
  // LibTorch's own batching of select_scatter (2.11) has wrong gradients.
  for (const char* op :
       {"aten::split.Tensor", "aten::split_with_sizes", "aten::chunk", "aten::select_scatter", "aten::slice_scatter"}) {
    rules.push_back({op, "shape", {}, {2}});
  }
  rules.push_back({"aten::diagonal_scatter", "shape", {}, {3, 4}});
  for (const char* op : {"aten::flatten.using_ints", "aten::transpose.int"}) rules.push_back({op, "shape", {}, {1, 2}});
  rules.push_back({"aten::cat", "shape", {{"behind_slots", concatenate, nullptr}}});
  rules.push_back({"aten::permute", "shape", {{"behind_slots", permute, nullptr}}});
  rules.push_back({"aten::clone", "shape", {{"behind_slots", clone, nullptr}}});
  rules.push_back({"aten::contiguous", "shape", {{"behind_slots", contiguous, nullptr}}});
  for (const char* op : {"aten::view", "aten::reshape", "aten::_unsafe_view"}) {
    rules.push_back({op, "reshape", {{"behind_slots", reshape, nullptr}}, {}, reshape});
  }
  return rules;
}

}  // namespace hfta::fusion
