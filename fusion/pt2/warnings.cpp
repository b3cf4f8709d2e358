#include "fusion/pt2/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::pt2 {
namespace {

std::string place_of(const Node& node) { return node.where.empty() ? node.path : node.where; }

// A norm whose scale is not trained is frozen on purpose, statistics and all.
bool is_frozen(const Graph& graph, const Node& node) {
  return std::none_of(graph.weights.begin(), graph.weights.end(), [&](const Weight& weight) {
    return weight.trained && std::count(node.args.begin(), node.args.end(), Arg(weight.value)) > 0;
  });
}

/// Layers that behave differently in training.
struct Modes {
  int training = 0;
  std::vector<std::string> evaluating;  ///< Places.

  void add(const Graph& graph, const Node& node, const OpTraits& op) {
    const Arg* given = argument(node, op.training);
    const bool* flag = given == nullptr ? nullptr : std::get_if<bool>(given);
    if (flag == nullptr || goes_by_samples(node, op)) return;
    if (*flag) ++training;
    if (!*flag && !(op.kind == OpClass::kNorm && is_frozen(graph, node))) evaluating.push_back(node.path);
  }

 private:
  // A norm of each sample that keeps no statistics does the same in both modes.
  static bool goes_by_samples(const Node& node, const OpTraits& op) {
    const Arg* mean = argument(node, op.statistics.mean);
    return op.kind == OpClass::kNorm && !op.statistics.over_batch &&
           (mean == nullptr || std::holds_alternative<std::monostate>(*mean));
  }
};

}  // namespace

std::vector<std::string> warnings_of(const Translation& model) {
  const Graph& graph = model.graph;
  std::vector<std::string> warnings;
  Modes modes;
  std::map<std::string, std::vector<std::string>> random;
  for (const Node& node : graph.nodes) {
    const OpTraits* op = op_traits(node.op);
    if (op == nullptr) continue;  // numbers
    modes.add(graph, node, *op);
    if (op->draws != Draws::kNothing && op->draws != Draws::kNoise) random[node.op].push_back(place_of(node));
  }
  if (!modes.evaluating.empty() && modes.training == 0) {
    const std::size_t more = modes.evaluating.size() - 1;
    warnings.push_back(printable(fmt::format(
        "no dropout and no batch norm trains as in model.train(): {}{} as in model.eval(). That is right where these "
        "parts are frozen; else export model.train()",
        modes.evaluating[0], more == 0 ? " runs" : fmt::format(" and {} more run", more))));
  }
  for (const auto& [op, places] : random) {
    const std::string count = places.size() > 1 ? fmt::format(" and {} more", places.size() - 1) : "";
    warnings.push_back(printable(fmt::format(
        "{}{}: {} draws at random in training; evaluation takes its mean, unless model.evaluation names a graph",
        places[0], count, op)));
  }
  if (!model.functions.empty()) {
    const std::size_t more = model.functions.size() - 1;
    warnings.push_back(printable(fmt::format(
        "{}{}: a torch.autograd.Function, it seems: the file has its forward, and not its backward, so that "
        "gradients are those of the forward's ops. With detach() the file says both: docs/models.md, 'A "
        "backward of your own'",
        model.functions[0], more == 0 ? "" : fmt::format(" and {} more", more))));
  }
  return warnings;
}

}  // namespace hfta::fusion::pt2
