#pragma once
// Compiled graphs in double, judged by finite differences of their own loss, and by what a slow reference says of their
// output.

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fusion/cpu/compile.hpp"

namespace hfta::fusion::cpu::testing {

/// A small graph whose inputs are trained weights, so that every gradient is checked.
class SmallGraph {
 public:
  /// A weight with values in (-1, 1).
  ValueId weight(const std::string& name, Shape shape, bool trained = true) {
    const ValueId id = value(shape, DType::kFloat64);
    graph.weights.push_back({name, shape, DType::kFloat64, {}, trained, id, nullptr, {}});
    CountedRandom random(17, Stream::kDropout, graph.weights.size());
    std::vector<double> values(static_cast<std::size_t>(elements_of(shape, 1)));
    for (double& v : values) v = 2 * random.uniform() - 1;
    weights.push_back(std::move(values));
    return id;
  }
  /// A weight that is not trained, of another dtype: indices, masks, numbers of 8 or 16 bits, which `values` are.
  ValueId constant(const std::string& name, Shape shape, DType dtype, std::vector<double> values) {
    const ValueId id = weight(name, std::move(shape), false);
    graph.weights.back().dtype = dtype;
    graph.values[static_cast<std::size_t>(id)].dtype = dtype;
    weights.back() = std::move(values);
    return id;
  }
  /// One call; `args` complete, as the op's schema has them. Its first output.
  ValueId call(const std::string& op, std::vector<Arg> args, std::size_t outputs = 1) {
    Node node{op, std::move(args), {}, op, "here"};
    for (std::size_t o = 0; o < outputs; ++o) node.outputs.push_back(value({}, DType::kFloat64));
    graph.nodes.push_back(node);
    graph.outputs = {node.outputs.front()};
    return graph.outputs[0];
  }
  /// Output o of the last call.
  [[nodiscard]] ValueId output(std::size_t o) const { return graph.nodes.back().outputs.at(o); }

  Graph graph;
  std::vector<std::vector<double>> weights;  ///< Values, by Graph::weights.
  std::vector<double> hypers;
  const Library* library = nullptr;  ///< Of compile().

 private:
  ValueId value(Shape shape, DType dtype) {
    graph.values.push_back({fmt::format("v{}", graph.values.size()), std::move(shape), dtype});
    return static_cast<ValueId>(graph.values.size()) - 1;
  }
};

struct Outcome {
  double loss = 0;
  Dims sizes;
  std::vector<double> output;                  ///< Row-major.
  std::vector<std::vector<double>> gradients;  ///< By weight; empty where there is none.
};

/// The graph with its output's mean squared error against an input of targets, as compile() takes it: the error,
/// and behind it the output. Throws as compile().
[[nodiscard]] Graph with_error(Graph graph, DType dtype, const Library* library = nullptr);

/// Mean squared error against a target of sines. Runs the plan again in the same arena, alone and by teams of 1, 2 and
/// 3 threads, which must give equal bits: no kernel may read what it has not written, and nothing may depend on who
/// runs it. So must plans that keep less for the backward and compute it again, and those that apply gradients: who
/// takes one puts NaN in its and its weight's place, which nobody may read again. The stages of pipelines that the
/// graph is cut into must be together what it is, to 1e-12.
[[nodiscard]] Outcome run_training(const SmallGraph& small);

/// The stages that the cut makes are together what the whole graph is, run_training()'s `whole`, to 1e-12; fails the
/// test where they are not. Throws as compile().
void check_stages(const SmallGraph& small, const StageCut& cut, const Outcome& whole);

/// How often run_training() hands work to a team.
[[nodiscard]] std::int64_t shared_kernels(const SmallGraph& small);

/// The algorithms of the op's kernels in the plan that run_training() runs, in order; none of its copies of values.
[[nodiscard]] std::vector<std::string> algorithms(const SmallGraph& small, const std::string& op);

/// The same as run_training() with every tensor in float.
[[nodiscard]] Outcome run_in_float(const SmallGraph& small);
/// Outputs and gradients in float against those in double, relative to the largest element; fails the test.
void check_float(const SmallGraph& small, double tolerance = 1e-5);

/// Every gradient (of at most 40 elements a weight) against central differences; fails the test where one is off.
void check_gradients(const SmallGraph& small, double tolerance = 1e-6);

}  // namespace hfta::fusion::cpu::testing
