#include <fmt/format.h>

#include <algorithm>

#include "fusion/graph/names.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/options.hpp"

namespace hfta::fusion::pt2 {
namespace {

std::string path_of(const Node& node, std::size_t arg) {
  return arg < node.names.size() && !node.names[arg].empty() ? node.path + "." + node.names[arg] : "";
}

bool makes_floats(const Graph& graph, const Node& node) {
  const ValueId first = node.outputs.empty() ? kNoValue : node.outputs[0];
  return first == kNoValue || is_floating(part_of(graph.values[static_cast<std::size_t>(first)].dtype));
}

bool is_bindable(const Graph& graph, const Node& node, std::size_t arg) {
  if (arg >= node.names.size() || !makes_floats(graph, node)) return false;
  if (std::holds_alternative<double>(node.args[arg])) return true;
  return std::holds_alternative<std::int64_t>(node.args[arg]) && is_factor(node.op, node.names[arg]);
}

// Writes out the numbers of these paths that calls leave out, so that they can be bound like others.
void write_out_defaults(Graph& graph, const std::string& path) {
  for (Node& node : graph.nodes) {
    if (node.names.size() != node.args.size()) continue;  // a call of numbers
    for (const DefaultNumber& number : default_numbers(node.op)) {
      if (argument(node, number.argument) != nullptr) continue;
      if (!matches(path, fmt::format("{}.{}", node.path, number.argument))) continue;
      node.args.emplace_back(number.value);
      node.names.emplace_back(number.argument);
    }
  }
}

std::vector<std::string> bindable_paths(const Graph& graph) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (is_bindable(graph, node, i)) paths.push_back(path_of(node, i));
    }
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

[[noreturn]] void fail_unbound(Graph graph, const Binding& binding) {
  write_out_defaults(graph, "*");
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      if (!matches(binding.path, path_of(node, i))) continue;
      const bool bound = std::holds_alternative<HyperRef>(node.args[i]);
      fail(binding.where, fmt::format("cannot bind '{}': {}", binding.path,
                                      bound ? "another pattern binds it already"
                                            : "it is no factor or rate, but changes shapes or is computed"));
    }
  }
  fail(binding.where,
       fmt::format("found nothing to bind at '{}'{}", binding.path, hint(binding.path, bindable_paths(graph))));
}

// Whether anything took the number.
bool bind_all(Graph& graph, const std::string& path, HyperRef hyper) {
  bool any = false;
  write_out_defaults(graph, path);
  for (Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (!is_bindable(graph, node, i) || !matches(path, path_of(node, i))) continue;
      node.args[i] = hyper;
      any = true;
    }
  }
  return any;
}

}  // namespace

void bind(Graph& graph, Graph* evaluation, const std::vector<Binding>& bindings) {
  for (const Binding& binding : bindings) {
    const HyperRef hyper{static_cast<int>(graph.hypers.size())};
    const bool trained = bind_all(graph, binding.path, hyper);
    const bool evaluated = evaluation != nullptr && bind_all(*evaluation, binding.path, hyper);
    if (!trained && !evaluated) fail_unbound(graph, binding);
    graph.hypers.push_back({binding.path, binding.value});
  }
}

}  // namespace hfta::fusion::pt2
