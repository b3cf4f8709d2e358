// Linear layers whose weight is held in integers, and multiplied by scales in calls of the layer's own: torchao's
// weight-only layers, and others that are written so.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "fusion/adapters/layer_calls.hpp"
#include "fusion/graph/names.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/op_traits.hpp"

namespace hfta::fusion::adapters {
namespace {

/// The calls of a module that follow one another.
struct Run {
  std::string module;
  std::size_t begin = 0, end = 0;  ///< Positions in Graph::nodes.
};

bool is_within(std::string_view path, const std::string& module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

// The module by whose path a weight in integers is called, however deep below it the weight lies: "a" for
// "a.parametrizations.weight.original0".
std::optional<std::string> module_with(const Weight& weight, const std::set<std::string>& paths) {
  std::string module = weight.name;
  for (std::size_t dot = module.rfind('.'); dot != std::string::npos; dot = module.rfind('.')) {
    module.resize(dot);
    if (paths.contains(module)) return module;
  }
  return std::nullopt;
}

bool is_integer_matrix(const Weight& weight) {
  return weight.shape.size() == 2 && !is_floating(weight.dtype) && !is_complex(weight.dtype) &&
         weight.dtype != DType::kBool;
}

std::set<std::string> quantized_modules(const Graph& graph) {
  std::set<std::string> paths, modules;
  for (const Node& node : graph.nodes) paths.insert(node.path);
  for (const Weight& weight : graph.weights) {
    if (!is_integer_matrix(weight)) continue;
    if (auto module = module_with(weight, paths)) modules.insert(*std::move(module));
  }
  return modules;
}

std::vector<Run> runs_of(const Graph& graph, const std::set<std::string>& modules) {
  std::vector<Run> runs;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string& path = graph.nodes[n].path;
    if (!runs.empty() && runs.back().end == n && is_within(path, runs.back().module)) {
      ++runs.back().end;
    } else if (modules.contains(path)) {
      runs.push_back({path, n, n + 1});
    }
  }
  return runs;
}

class RunReader {
 public:
  explicit RunReader(const Graph& graph) : graph_(graph), makers_(makers_of(graph)), readers_(graph.values.size()) {
    for (const Weight& weight : graph.weights) {
      weights_.insert(weight.value);
      if (is_integer_matrix(weight)) integers_.insert(weight.value);
    }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId id : inputs_of(graph.nodes[n])) readers_[at(id)].push_back(n);
    }
    for (const ValueId id : graph.outputs) readers_[at(id)].push_back(graph.nodes.size());
  }

  // The run as a layer, if it is one: one product, with integers that were widened, of one input that comes from
  // outside; and one result, which only others read.
  [[nodiscard]] std::optional<LayerCall> layer(const Run& run) const {
    const std::optional<ValueId> x = only(inputs(run)), y = only(results(run));
    if (!x || !y || !is_product_with_integers(run)) return std::nullopt;
    const Value &input = graph_.values[at(*x)], &output = graph_.values[at(*y)];
    const bool numbers = is_floating(input.dtype) && is_floating(output.dtype);
    if (!numbers || input.shape.empty() || input.shape.size() != output.shape.size()) return std::nullopt;
    const bool same_rows = std::equal(input.shape.begin(), input.shape.end() - 1, output.shape.begin());
    if (!same_rows || input.shape.back() < 1 || output.shape.back() < 1) return std::nullopt;
    return LayerCall{makers_[at(*y)],
                     LoraKind::kLinear,
                     run.module,
                     std::nullopt,
                     {output.shape.back(), input.shape.back()},
                     output.dtype,
                     *x};
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
  static std::optional<ValueId> only(const std::set<ValueId>& ids) {
    return ids.size() == 1 ? std::optional(*ids.begin()) : std::nullopt;
  }
  [[nodiscard]] static bool is_in(const Run& run, std::size_t node) { return node >= run.begin && node < run.end; }

  // The values that come from outside, except weights and numbers.
  [[nodiscard]] std::set<ValueId> inputs(const Run& run) const {
    std::set<ValueId> found;
    for (std::size_t n = run.begin; n < run.end; ++n) {
      for (const ValueId id : inputs_of(graph_.nodes[n])) {
        if (!weights_.contains(id) && !graph_.values[at(id)].number && !is_in(run, makers_[at(id)])) found.insert(id);
      }
    }
    return found;
  }

  // The values that others read; empty where the run reads one, too, as it would then read the adapted result.
  [[nodiscard]] std::set<ValueId> results(const Run& run) const {
    std::set<ValueId> found;
    for (std::size_t n = run.begin; n < run.end; ++n) {
      for (const ValueId id : graph_.nodes[n].outputs) {
        if (id == kNoValue || graph_.values[at(id)].number) continue;
        const std::vector<std::size_t>& readers = readers_[at(id)];
        const auto inside = std::count_if(readers.begin(), readers.end(), [&](std::size_t r) { return is_in(run, r); });
        if (inside == std::ssize(readers)) continue;
        if (inside > 0) return {};
        found.insert(id);
      }
    }
    return found;
  }

  [[nodiscard]] bool is_product_with_integers(const Run& run) const {
    std::set<ValueId> widened = integers_;  // those that are still integers, too
    int products = 0, with_integers = 0;
    for (std::size_t n = run.begin; n < run.end; ++n) {
      const Node& node = graph_.nodes[n];
      const std::vector<ValueId> read = inputs_of(node);
      const bool any = std::any_of(read.begin(), read.end(), [&](ValueId id) { return widened.contains(id); });
      if (any) widened.insert(node.outputs.begin(), node.outputs.end());
      const OpTraits* const traits = op_traits(node.op);
      if (traits == nullptr || traits->kind != OpClass::kProduct) continue;
      ++products;
      with_integers += any ? 1 : 0;
    }
    return products == 1 && with_integers == 1;
  }

  const Graph& graph_;
  std::set<ValueId> weights_, integers_;
  std::vector<std::size_t> makers_;
  std::vector<std::vector<std::size_t>> readers_;  // by value: positions of calls; nodes.size() is the graph itself
};

}  // namespace

std::vector<LayerCall> quantized_calls(const Graph& graph) {
  const RunReader reader(graph);
  std::vector<LayerCall> calls;
  for (const Run& run : runs_of(graph, quantized_modules(graph))) {
    if (auto call = reader.layer(run)) calls.push_back(*std::move(call));
  }
  return calls;
}

}  // namespace hfta::fusion::adapters
