#include "fusion/pt2/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "fusion/graph/names.hpp"
#include "fusion/pt2/stack_trace.hpp"

namespace hfta::fusion::pt2 {
namespace {

constexpr std::array<std::pair<std::int64_t, DType>, 12> kDTypes = {{{1, DType::kUInt8},
                                                                     {2, DType::kInt8},
                                                                     {3, DType::kInt16},
                                                                     {4, DType::kInt32},
                                                                     {5, DType::kInt64},
                                                                     {6, DType::kFloat16},
                                                                     {7, DType::kFloat32},
                                                                     {8, DType::kFloat64},
                                                                     {10, DType::kComplex64},
                                                                     {11, DType::kComplex128},
                                                                     {12, DType::kBool},
                                                                     {13, DType::kBFloat16}}};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "L__self__conv,conv,torch.nn.modules.conv.Conv2d;...": a key, the path and the class of each module.
std::vector<ModuleEntry> modules_from(const std::string& stack) {
  std::vector<ModuleEntry> modules;
  for (const std::string& entry : split(stack, ';')) {
    const std::vector<std::string> parts = split(entry, ',');
    // torch stands in for a stack that it lost.
    if (parts.size() < 3 || parts[1].starts_with("_empty_nn_module_stack")) continue;
    // A module that runs again is "name@1".
    modules.push_back({parts[1].substr(0, parts[1].find('@')), parts[2]});
  }
  return modules;
}

}  // namespace

DType dtype_from(const Reader& number) {
  const std::int64_t code = number.integer();
  for (const auto& [known, dtype] : kDTypes) {
    if (known == code) return dtype;
  }
  constexpr std::int64_t kComplexHalf = 9;
  number.fail(
      fmt::format("found scalar type {}{}, wanted one of float32, float64, float16, bfloat16, complex64, complex128, "
                  "bool and the integers of 8 (also unsigned), 16, 32 and 64 bits",
                  code, code == kComplexHalf ? " (complex32)" : ""));
}

SymInt sym_int_from(const Reader& json) {
  const Tagged size = tagged_from(json);
  SymInt out;
  if (size.tag == "as_int") {
    out.number = size.value.integer();
    return out;
  }
  if (size.tag != "as_expr") json.fail(fmt::format("found '{}', wanted as_int or as_expr", size.tag));
  out.expression = size.value["expr_str"].text();
  if (out.expression.empty()) json.fail("found an empty expression");
  if (size.value.has("hint") && size.value["hint"].has("as_int")) out.hint = size.value["hint"]["as_int"].integer();
  return out;
}

TensorMeta tensor_meta_from(const Reader& json) {
  constexpr std::int64_t kStrided = 7;
  TensorMeta meta;
  meta.dtype = dtype_from(json["dtype"]);
  for (const Reader& size : json["sizes"].list()) meta.sizes.push_back(sym_int_from(size));
  for (const Reader& stride : json["strides"].list()) meta.strides.push_back(sym_int_from(stride));
  if (meta.strides.size() != meta.sizes.size()) {
    json.fail(fmt::format("found {} strides for {} sizes", meta.strides.size(), meta.sizes.size()));
  }
  meta.offset = sym_int_from(json["storage_offset"]);
  meta.requires_grad = json["requires_grad"].boolean();
  if (json["layout"].integer() != kStrided) json["layout"].fail("found a sparse tensor, wanted dense ones");
  return meta;
}

std::vector<std::int64_t> order_in_memory(const TensorMeta& meta) {
  const auto at_export = [](const SymInt& number) {
    return number.expression.empty() ? number.number : number.hint.value_or(0);
  };
  std::vector<std::int64_t> single, order;  // dimensions of one element, repeated or not, have no place in memory
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    const bool one = at_export(meta.sizes[d]) == 1 || at_export(meta.strides[d]) == 0;
    (one ? single : order).push_back(static_cast<std::int64_t>(d));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return at_export(meta.strides[static_cast<std::size_t>(a)]) > at_export(meta.strides[static_cast<std::size_t>(b)]);
  });
  if (std::is_sorted(order.begin(), order.end())) return {};
  order.insert(order.begin(), single.begin(), single.end());
  return order;
}

Tagged tagged_from(const Reader& json) {
  for (const auto& [tag, value] : json.members()) {
    if (!value.json().is_null()) return {tag, value};
  }
  json.fail("found an empty union");
}

std::vector<Tagged> tagged_list_from(const Reader& json) {
  std::vector<Tagged> list;
  for (const Reader& item : json.list()) list.push_back(tagged_from(item));
  return list;
}

NodeRecord node_from(const Reader& json, const std::string& file) {
  NodeRecord node;
  node.target = json["target"].text();
  if (json.has("metadata")) {
    const Reader metadata = json["metadata"];
    if (metadata.has("nn_module_stack")) node.modules = modules_from(metadata["nn_module_stack"].text());
    if (metadata.has("stack_trace")) {
      const std::string& trace = metadata["stack_trace"].text();
      node.where = where_from(trace);
      const auto own = std::count_if(node.modules.begin(), node.modules.end(),
                                     [](const ModuleEntry& module) { return !module.type.starts_with("torch.nn."); });
      if (!node.modules.empty()) node.function = function_from(trace, static_cast<std::size_t>(own));
    }
  }
  node.path = node.modules.empty() || node.modules.back().path.empty() ? kModelPath : node.modules.back().path;
  node.place = fmt::format("{}: {}{}{} ({})", file, node.where, node.where.empty() ? "" : ": ", node.path, node.target);
  const Reader placed = json.at(node.place);
  for (const Reader& input : placed["inputs"].list()) {
    node.inputs.emplace_back(input["name"].text(), tagged_from(input["arg"]));
  }
  node.outputs = tagged_list_from(placed["outputs"]);
  return node;
}

}  // namespace hfta::fusion::pt2
