#include "fusion/pt2/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/text.hpp"
#include "fusion/pt2/ops.hpp"

namespace hfta::fusion::pt2 {
namespace {

constexpr std::array<std::string_view, 20> kRandom = {
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial",
    "normal",    "normal_",    "poisson", "rand",         "rand_like",  "randint",     "randint_like",
    "randn",     "randn_like", "random_", "randperm",     "uniform",    "uniform_"};

std::string place_of(const Node& node) { return node.where.empty() ? node.path : node.where; }

// A norm whose scale is not trained is frozen on purpose, statistics and all.
bool is_frozen(const Graph& graph, const Node& node) {
  return std::none_of(graph.weights.begin(), graph.weights.end(), [&](const Weight& weight) {
    return weight.trained && std::count(node.args.begin(), node.args.end(), Arg(weight.value)) > 0;
  });
}

/// Layers that behave differently in training say so by an argument of one of these names.
struct Modes {
  int training = 0;
  std::vector<std::string> evaluating;  ///< Places.

  void add(const Graph& graph, const Node& node) {
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      const bool* const flag = std::get_if<bool>(&node.args[i]);
      if (flag == nullptr || (node.names[i] != "train" && node.names[i] != "training")) continue;
      const bool norm = bare_name(node.op).find("norm") != std::string::npos;
      if (*flag) ++training;
      if (!*flag && !(norm && is_frozen(graph, node))) evaluating.push_back(node.path);
    }
  }
};

}  // namespace

std::vector<std::string> warnings_of(const Graph& graph) {
  std::vector<std::string> warnings;
  Modes modes;
  std::map<std::string, std::vector<std::string>> random;
  for (const Node& node : graph.nodes) {
    modes.add(graph, node);
    const std::string name = bare_name(node.op);
    if (std::find(kRandom.begin(), kRandom.end(), name) != kRandom.end()) random[node.op].push_back(place_of(node));
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
    warnings.push_back(printable(
        fmt::format("{}{}: {} draws at random in training; evaluation, without a graph of its own, takes its mean",
                    places[0], count, op)));
  }
  return warnings;
}

}  // namespace hfta::fusion::pt2
