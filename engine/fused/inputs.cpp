#include "engine/fused/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

const fusion::Value& input(const fusion::Graph& graph, std::size_t i) {
  return graph.values[static_cast<std::size_t>(graph.inputs[i])];
}

std::vector<std::string> input_names(const fusion::Graph& graph) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) names.push_back(input(graph, i).name);
  return names;
}

}  // namespace

std::vector<std::string> in_input_order(const TaskSpec& spec, const fusion::Graph& graph) {
  const std::vector<std::string>& x = spec.data.x;
  std::vector<std::string> names = input_names(graph);
  if (x.size() != names.size()) return x;  // check_task complains
  if (std::multiset<std::string>(x.begin(), x.end()) == std::multiset<std::string>(names.begin(), names.end())) {
    return names;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == names[i] || std::count(names.begin(), names.end(), x[i]) == 0) continue;
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{}: data.x: found '{}' in the place of input '{}' of the model, which has another input of "
                    "that name; wanted the names of all inputs (then their order is free), or at each place the "
                    "array of the input there: {}",
                    spec.data.where, printable(x[i]), printable(names[i]), printable(join(names))));
  }
  return x;
}

std::string told_by_order(const TaskSpec& spec, const fusion::Graph& graph) {
  const std::vector<std::string>& x = spec.data.x;
  if (x.size() != graph.inputs.size()) return "";
  bool another_fits = false;
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < x.size(); ++i) {
    pairs.push_back(fmt::format("{} for '{}'", printable(x[i]), printable(input(graph, i).name)));
    for (std::size_t k = 0; k < i; ++k) {
      const fusion::Value &a = input(graph, i), &b = input(graph, k);
      const bool named = x[i] == a.name || x[k] == b.name;
      another_fits = another_fits || (!named && a.shape == b.shape && a.dtype == b.dtype);
    }
  }
  return another_fits ? join(pairs) : "";
}

}  // namespace hfta::engine
