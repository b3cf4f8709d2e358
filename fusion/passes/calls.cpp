#include "fusion/passes/calls.hpp"

#include <array>
#include <numeric>
#include <utility>

#include "fusion/graph/arguments.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {

bool is_call_of(const Node& node, std::string_view name) { return base_name(node.op) == name; }

namespace call {
namespace {

Node in_place_of(const Node& model, const char* op, std::vector<Arg> args) {
  return {op, std::move(args), model.outputs, model.path, model.where, model.no_gradient};
}

// A call with those of `model`'s arguments that say of what kind a tensor is.
Node of_its_kind(const Node& model, const char* op, std::vector<Arg> args) {
  Node node = in_place_of(model, op, std::move(args));
  for (const char* name : {"dtype", "layout", "device", "pin_memory", "memory_format"}) {
    if (!has_argument(node.op, name)) continue;
    const Arg* kind = find_argument(model, name);
    node.args.push_back(kind != nullptr ? *kind : Arg());
  }
  return node;
}

}  // namespace

Node add(const Node& model, const Arg& a, const Arg& b) {
  return in_place_of(model, "aten::add.Tensor", {a, b, std::int64_t{1}});
}

Node cat(const Node& model, std::vector<ValueId> parts, std::int64_t dim) {
  return in_place_of(model, "aten::cat", {std::move(parts), dim});
}

Node cloned(const Node& model, const Arg& tensor) { return in_place_of(model, "aten::clone", {tensor, {}}); }

Node copied_into(const Node& model, const Arg& self, const Arg& source) {
  return in_place_of(model, "aten::copy_", {self, source, false});
}

Node filled_in_place(const Node& model, const Arg& self, const Arg& number) {
  return in_place_of(model, "aten::fill_.Scalar", {self, number});
}

Node full(const Node& model, const Arg& size, const Arg& number) {
  return of_its_kind(model, "aten::full", {size, number});
}

Node full_like(const Node& model, const Arg& tensor, const Arg& number) {
  return of_its_kind(model, "aten::full_like", {tensor, number});
}

Node lerp_in_place(const Node& model, const Arg& self, const Arg& end, const Arg& weight) {
  return in_place_of(model, "aten::lerp_.Scalar", {self, end, weight});
}

Node slice(const Node& model, const Arg& tensor, std::int64_t dim, std::int64_t begin, std::int64_t end) {
  return in_place_of(model, "aten::slice.Tensor", {tensor, dim, begin, end, std::int64_t{1}});
}

Node to_dtype(const Node& model, const Arg& tensor, DType dtype) {
  return in_place_of(model, "aten::to.dtype", {tensor, dtype, false, false, {}});
}

Node without_running_statistics(Node norm) {
  const RunningStatistics& statistics = traits_of(norm).statistics;
  argument_of(norm, statistics.mean) = argument_of(norm, statistics.variance) = {};
  return norm;
}

Node var_mean(const Node& model, const Arg& tensor, std::vector<std::int64_t> dims) {
  return in_place_of(model, "aten::var_mean.correction", {tensor, std::move(dims), std::int64_t{1}, false});
}

}  // namespace call

Substitution::Substitution(SpecializedGraph reading) : out_(std::move(reading)), stands_for_(out_.graph.values.size()) {
  nodes_ = std::exchange(out_.graph.nodes, {});
  index_ = std::exchange(out_.index, {});
  std::iota(stands_for_.begin(), stands_for_.end(), 0);
}

Node Substitution::take(std::size_t i) {
  Node node = std::move(nodes_[i]);
  for (Arg& arg : node.args) {
    for_each_value(arg, [&](ValueId& id) { id = stands_for_[static_cast<std::size_t>(id)]; });
  }
  return node;
}

void Substitution::add(Node node, std::size_t i) {
  out_.graph.nodes.push_back(std::move(node));
  out_.index.push_back(index_[i]);
}

void Substitution::stand_for(const Node& node, const Arg& value) {
  const ValueId stands = argument_as<ValueId>(node, value, "that stands for its result");
  for (const ValueId id : node.outputs) {
    if (id != kNoValue) stands_for_[static_cast<std::size_t>(id)] = stands;
  }
}

SpecializedGraph Substitution::result() && {
  for (ValueId& id : out_.graph.outputs) id = stands_for_[static_cast<std::size_t>(id)];
  return std::move(out_);
}

}  // namespace hfta::fusion
