#include "fusion/passes/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

const std::vector<c10::Argument>& arguments_of(const c10::OperatorHandle& op) { return op.schema().arguments(); }

Arg to_arg(const Node& node, const c10::Argument& argument) {
  if (!argument.default_value()) fail_at(node, fmt::format("found no argument '{}', wanted one", argument.name()));
  const c10::IValue& value = *argument.default_value();
  if (value.isNone()) return {};
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (value.isIntList()) return value.toIntVector();
  if (value.isDoubleList()) return value.toDoubleVector();
  if (value.isTensorList() || value.isList()) return std::vector<ValueId>();
  fail_at(node, fmt::format("found no argument '{}', wanted one (its default cannot be expressed)", argument.name()));
}

// One size stands for all of them, as in Python.
void write_out(Arg& arg, const c10::Argument& argument) {
  const auto count = static_cast<std::size_t>(argument.N().value_or(0));
  if (count == 0) return;
  if (const auto* one = std::get_if<std::int64_t>(&arg)) arg = std::vector<std::int64_t>(count, *one);
  if (auto* list = std::get_if<std::vector<std::int64_t>>(&arg); list != nullptr && list->size() == 1) {
    list->resize(count, list->front());
  }
  if (auto* list = std::get_if<std::vector<Size>>(&arg); list != nullptr && list->size() == 1) {
    list->resize(count, list->front());
  }
}

std::size_t position_of(const Node& node, std::size_t i, const std::vector<c10::Argument>& schema) {
  if (i >= node.names.size() || node.names[i].empty()) return i;
  const auto found = std::find_if(schema.begin(), schema.end(),
                                  [&](const c10::Argument& argument) { return argument.name() == node.names[i]; });
  if (found == schema.end()) {
    fail_at(node, fmt::format("found an argument '{}', which this LibTorch's op does not have; export with the torch "
                              "that hfta-tune was built with",
                              node.names[i]));
  }
  return static_cast<std::size_t>(found - schema.begin());
}

void complete(Node& node) {
  const c10::OperatorHandle op = find_op(node);
  static_cast<void>(traits_of(node));
  const std::vector<c10::Argument>& schema = arguments_of(op);
  std::vector<std::optional<Arg>> given(schema.size());
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const std::size_t position = position_of(node, i, schema);
    if (position >= schema.size()) {
      fail_at(node, fmt::format("found {} arguments, wanted at most {}", node.args.size(), schema.size()));
    }
    given[position] = std::move(node.args[i]);
  }
  node.args.clear();
  node.names.clear();
  for (std::size_t i = 0; i < schema.size(); ++i) {
    node.args.push_back(given[i] ? std::move(*given[i]) : to_arg(node, schema[i]));
    write_out(node.args.back(), schema[i]);
  }
}

// Whether batch statistics are folded into running ones in place, which the op's schema does not say.
bool writes_statistics(const Node& node) {
  const OpTraits& op = traits_of(node);
  if (op.statistics.mean.empty() || op.statistics.first_output >= 0) return false;
  const Arg* training = find_argument(node, op.training);
  return training != nullptr && *training == Arg(true);
}

bool may_alias(const c10::Argument& argument) { return argument.alias_info() != nullptr; }

// Whether the call may return its input, or a view of it, without its schema saying so.
bool may_return_input(const Node& node) {
  constexpr std::array<std::string_view, 10> kOps = {
      "type_as",     "einsum",   "meshgrid",          "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes",
      "sum_to_size", "positive", "broadcast_tensors", "conj_physical"};
  const std::string_view name = base_name(node.op);
  if (name == "einsum" && inputs_of(node).size() > 1) return false;  // of several tensors it is a product
  return traits_of(node).draws == Draws::kNoise || name.starts_with("atleast_") ||
         std::find(kOps.begin(), kOps.end(), name) != kOps.end();
}

}  // namespace

void fail_at(const Node& node, const std::string& what) {
  throw Error(ErrorKind::kConfig, fmt::format("{}: {} ({}): {}", node.where, node.path, node.op, what));
}

std::optional<c10::OperatorHandle> find_schema(const std::string& op) {
  const std::size_t dot = op.find('.');
  return c10::Dispatcher::singleton().findSchema(
      {op.substr(0, dot), dot == std::string::npos ? "" : op.substr(dot + 1)});
}

c10::OperatorHandle find_op(const Node& node) {
  const auto handle = find_schema(node.op);
  if (!handle) {
    fail_at(node, "this LibTorch has no such op; a model may use PyTorch's own ops, not those of extensions");
  }
  return *handle;
}

Graph with_complete_arguments(Graph graph) {
  for (Node& node : graph.nodes) {
    if (!is_number_op(node.op)) complete(node);
  }
  if (graph.evaluation != nullptr) {
    graph.evaluation = std::make_shared<const Graph>(with_complete_arguments(*graph.evaluation));
  }
  return graph;
}

const OpTraits& traits_of(const Node& node) {
  const OpTraits* traits = op_traits(node.op);
  if (traits == nullptr) fail_at(node, why_not_admitted(node.op));
  return *traits;
}

bool has_argument(const std::string& op, std::string_view name) {
  const c10::OperatorHandle handle = find_op(Node{op, {}, {}, "", ""});
  return handle.schema().argumentIndexWithName(name).has_value();
}

const Arg* find_argument(const Node& node, std::string_view name) {
  if (name.empty() || is_number_op(node.op)) return nullptr;
  const c10::OperatorHandle op = find_op(node);
  const std::optional<int> position = op.schema().argumentIndexWithName(name);
  return position ? &argument_at(node, static_cast<std::size_t>(*position)) : nullptr;
}

Arg* find_argument(Node& node, std::string_view name) {
  return const_cast<Arg*>(find_argument(std::as_const(node), name));
}

const Arg& argument_of(const Node& node, std::string_view name) {
  const Arg* found = find_argument(node, name);
  if (found == nullptr) fail_at(node, fmt::format("found no argument '{}', wanted one", name));
  return *found;
}

Arg& argument_of(Node& node, std::string_view name) { return const_cast<Arg&>(argument_of(std::as_const(node), name)); }

bool by_batch_statistics(const Node& node) {
  return !is_number_op(node.op) && node.outputs.size() == 1 && traits_of(node).statistics.over_batch &&
         writes_statistics(node);
}

bool makes_view(const Node& node) {
  if (is_number_op(node.op)) return false;
  const c10::OperatorHandle op = find_op(node);
  const auto& returns = op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), may_alias) || may_return_input(node);
}

bool writes_in_place(const Node& node) {
  if (is_number_op(node.op)) return false;
  const c10::OperatorHandle op = find_op(node);
  const auto& returns = op.schema().returns();
  return returns.empty() || (returns[0].alias_info() != nullptr && returns[0].alias_info()->isWrite());
}

std::vector<ValueId> written_by(const Node& node) {
  std::vector<ValueId> out;
  if (is_number_op(node.op)) return out;
  const c10::OperatorHandle op = find_op(node);
  const std::vector<c10::Argument>& schema = arguments_of(op);
  for (std::size_t i = 0; i < schema.size() && i < node.args.size(); ++i) {
    const c10::AliasInfo* alias = schema[i].alias_info();
    if (alias != nullptr && alias->isWrite()) for_each_value(node.args[i], [&](ValueId id) { out.push_back(id); });
  }
  if (!writes_statistics(node)) return out;
  const RunningStatistics& statistics = traits_of(node).statistics;
  for (const std::string_view buffer : {statistics.mean, statistics.variance}) {
    for_each_value(argument_of(node, buffer), [&](ValueId id) { out.push_back(id); });
  }
  return out;
}

Aliases::Aliases(const Graph& graph) : parent_(graph.values.size()) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (const Node& node : graph.nodes) {
    if (!makes_view(node)) continue;
    const auto join = [&](ValueId input, ValueId output) {
      if (output != kNoValue) parent_[static_cast<std::size_t>(set_of(output))] = set_of(input);
    };
    const c10::OperatorHandle op = find_op(node);
    const std::vector<c10::Argument>& schema = arguments_of(op);
    const bool says = std::any_of(schema.begin(), schema.end(), may_alias);
    std::vector<ValueId> inputs;  // what the schema does not say is so of the first tensor, or list of them
    for (std::size_t i = 0; i < std::min(schema.size(), node.args.size()); ++i) {  // defaults name no values
      if (says ? !may_alias(schema[i]) : !inputs.empty()) continue;
      for_each_value(node.args[i], [&](ValueId input) { inputs.push_back(input); });
    }
    const bool each_its_own = !says && inputs.size() > 1 && inputs.size() == node.outputs.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (!each_its_own || i == o) join(inputs[i], node.outputs[o]);
      }
    }
  }
}

ValueId Aliases::set_of(ValueId value) const {
  while (parent_[static_cast<std::size_t>(value)] != value) {
    ValueId& up = parent_[static_cast<std::size_t>(value)];
    up = parent_[static_cast<std::size_t>(up)];
    value = up;
  }
  return value;
}

}  // namespace hfta::fusion
