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

// Layers that behave differently in training say so by an argument of one of these names.
void count_modes(const Node& node, int& training, int& evaluating) {
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    const bool* const flag = std::get_if<bool>(&node.args[i]);
    if (flag == nullptr || (node.names[i] != "train" && node.names[i] != "training")) continue;
    ++(*flag ? training : evaluating);
  }
}

}  // namespace

std::vector<std::string> warnings_of(const Graph& graph) {
  std::vector<std::string> warnings;
  int training = 0;
  int evaluating = 0;
  std::map<std::string, std::vector<std::string>> random;
  for (const Node& node : graph.nodes) {
    count_modes(node, training, evaluating);
    const std::string name = bare_name(node.op);
    if (std::find(kRandom.begin(), kRandom.end(), name) != kRandom.end()) random[node.op].push_back(place_of(node));
  }
  if (evaluating > 0 && training == 0) {
    warnings.push_back(
        "the model was exported in evaluation mode, so that dropout and batch norm do not train: export model.train()");
  }
  for (const auto& [op, places] : random) {
    const std::string count = places.size() > 1 ? fmt::format(" and {} more", places.size() - 1) : "";
    warnings.push_back(printable(
        fmt::format("{}{}: {} draws at random in training; evaluation takes its mean", places[0], count, op)));
  }
  return warnings;
}

}  // namespace hfta::fusion::pt2
