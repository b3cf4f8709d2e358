#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/number_text.hpp"
#include "base/text.hpp"
#include "fusion/graph/names.hpp"
#include "fusion/graph/place.hpp"
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

// What a binding names: "drop.p", or "(model).other@0.1", those of its numbers that are 0.1.
struct Target {
  std::string path;
  std::optional<double> number;  ///< None: any.
};

Target target_of(const std::string& binding) {
  const std::size_t at = binding.rfind('@');
  if (at == std::string::npos) return {binding, std::nullopt};
  const auto number = parse_number<double>(std::string_view(binding).substr(at + 1));
  return number ? Target{binding.substr(0, at), number} : Target{binding, std::nullopt};
}

std::optional<double> number_of(const Arg& arg) {
  if (const auto* real = std::get_if<double>(&arg)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&arg)) return static_cast<double>(*whole);
  return std::nullopt;
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

std::vector<std::string> texts_of(const std::set<double>& numbers) {
  std::vector<std::string> texts;
  texts.reserve(numbers.size());
  for (const double number : numbers) texts.push_back(shortest(number));
  return texts;
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

[[noreturn]] void fail_unbound(Graph graph, const Binding& binding, const Target& target) {
  write_out_defaults(graph, "*");
  std::set<double> others;  // numbers of that name
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      if (!matches(target.path, path_of(node, i))) continue;
      if (target.number && is_bindable(graph, node, i)) {
        others.insert(*number_of(node.args[i]));
        continue;
      }
      const bool bound = std::holds_alternative<HyperRef>(node.args[i]);
      fail(binding.where, fmt::format("cannot bind '{}': {}", binding.path,
                                      bound ? "another pattern binds it already"
                                            : "it is no factor or rate, but changes shapes or is computed"));
    }
  }
  if (!others.empty()) {
    fail(binding.where, fmt::format("cannot bind '{}': '{}' names no number {}, but {}", binding.path, target.path,
                                    shortest(*target.number), join(texts_of(others))));
  }
  fail(binding.where,
       fmt::format("found nothing to bind at '{}'{}", binding.path, hint(binding.path, bindable_paths(graph))));
}

// One name may stand for several numbers, as "(model).other" does for all factors in a model's own forward. Where they
// differ, one value for all of them is hardly what is meant.
void check_one_number(const Graph& graph, const Binding& binding, const Target& target) {
  if (target.number || target.path.find('*') != std::string::npos) return;
  std::map<double, const Node*> found;  // by number: the first call that has it
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (is_bindable(graph, node, i) && path_of(node, i) == target.path)
        found.emplace(*number_of(node.args[i]), &node);
    }
  }
  if (found.size() < 2) return;
  std::vector<std::string> places;
  places.reserve(found.size());
  for (const auto& [number, node] : found) places.push_back(fmt::format("{} at {}", shortest(number), place_of(*node)));
  fail(binding.where,
       fmt::format("cannot bind '{}': it names {} different numbers: {}; '{}@{}' binds those that are {}", binding.path,
                   found.size(), join(places), target.path, shortest(found.begin()->first),
                   shortest(found.begin()->first)));
}

// Whether anything took the number.
bool bind_all(Graph& graph, const Binding& binding, const Target& target, HyperRef hyper) {
  bool any = false;
  write_out_defaults(graph, target.path);
  check_one_number(graph, binding, target);
  for (Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (!is_bindable(graph, node, i) || !matches(target.path, path_of(node, i))) continue;
      if (target.number && *target.number != *number_of(node.args[i])) continue;
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
    const Target target = target_of(binding.path);
    const bool trained = bind_all(graph, binding, target, hyper);
    const bool evaluated = evaluation != nullptr && bind_all(*evaluation, binding, target, hyper);
    if (!trained && !evaluated) fail_unbound(graph, binding, target);
    graph.hypers.push_back({binding.path, binding.value});
  }
}

}  // namespace hfta::fusion::pt2
