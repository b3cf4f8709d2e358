#include "fusion/pt2/given_back.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

namespace hfta::fusion::pt2 {
namespace {

const Arg* find(const Node& node, std::string_view name) {
  const auto at = std::find(node.names.begin(), node.names.end(), name);
  return at == node.names.end() ? nullptr : &node.args[static_cast<std::size_t>(std::distance(node.names.begin(), at))];
}

template <typename T>
T value_or(const Node& node, std::string_view name, T otherwise) {
  const Arg* const arg = find(node, name);
  const T* const value = arg == nullptr ? nullptr : std::get_if<T>(arg);
  return value == nullptr ? otherwise : *value;
}

const Value* value_of(const Graph& graph, const Arg* arg) {
  const auto* const id = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
  return id == nullptr || *id == kNoValue ? nullptr : &graph.values[static_cast<std::size_t>(*id)];
}

bool is_none(const Arg* arg) { return arg == nullptr || std::holds_alternative<std::monostate>(*arg); }

bool converts_nothing(const Node& node, const Value& input) {
  const Arg* const dtype = find(node, "dtype");
  const bool same = is_none(dtype) || (std::holds_alternative<DType>(*dtype) && std::get<DType>(*dtype) == input.dtype);
  return same && !value_or(node, "copy", false) && is_none(find(node, "memory_format"));
}

bool joins_one_dimension(const Node& node, std::int64_t rank) {
  const auto place = [&](std::string_view name, std::int64_t otherwise) {
    const std::int64_t dim = value_or(node, name, otherwise);
    return dim < 0 ? dim + rank : dim;
  };
  return rank > 0 && place("start_dim", 0) == place("end_dim", -1);
}

bool is_off(const Node& node) {
  const Arg* const p = find(node, "p");
  const bool never = p != nullptr && (*p == Arg(0.0) || *p == Arg(std::int64_t{0}));
  return never || !value_or(node, "train", true);
}

}  // namespace

bool gives_back_its_input(const Graph& graph, const Node& node) {
  const Value* const input = node.args.empty() ? nullptr : value_of(graph, &node.args.front());
  if (input == nullptr || input->number) return false;
  const auto rank = static_cast<std::int64_t>(input->shape.size());
  if (node.op.starts_with("aten::to.")) return converts_nothing(node, *input);
  if (node.op == "aten::type_as") {
    const Value* const other = value_of(graph, find(node, "other"));
    return other != nullptr && other->dtype == input->dtype;
  }
  if (node.op == "aten::flatten.using_ints") return joins_one_dimension(node, rank);
  if (node.op == "aten::sum_to_size") {
    const bool has_one = node.outputs.size() == 1 && node.outputs[0] != kNoValue;
    return has_one && graph.values[static_cast<std::size_t>(node.outputs[0])].shape == input->shape;
  }
  if (node.op.ends_with("dropout")) return is_off(node);
  if (node.op == "aten::positive") return true;
  return (node.op == "aten::atleast_1d" && rank >= 1) || (node.op == "aten::atleast_2d" && rank >= 2) ||
         (node.op == "aten::atleast_3d" && rank >= 3);
}

std::vector<ValueId> tensors_given_back(const Graph& graph, const Node& node) {
  const auto* const list = node.args.empty() ? nullptr : std::get_if<std::vector<ValueId>>(&node.args.front());
  const bool of_list = node.op == "aten::broadcast_tensors" || node.op.starts_with("aten::meshgrid") ||
                       (node.op.starts_with("aten::atleast_") && node.op.ends_with(".Sequence"));
  if (!of_list || list == nullptr || list->size() != node.outputs.size()) return {};
  std::vector<ValueId> same(list->size(), kNoValue);
  const auto shape = [&](ValueId id) { return graph.values[static_cast<std::size_t>(id)].shape; };
  for (std::size_t i = 0; i < same.size(); ++i) {
    if (node.outputs[i] != kNoValue && shape(node.outputs[i]) == shape((*list)[i])) same[i] = (*list)[i];
  }
  return same;
}

}  // namespace hfta::fusion::pt2
