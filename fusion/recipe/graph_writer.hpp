#pragma once
/// Adds values and calls to the end of a graph.

#include <string>
#include <utility>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

class GraphWriter {
 public:
  /// `dtype`: of floating-point values. The graph must outlive it.
  GraphWriter(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  /// Copies: calls add values, so that a reference would not last.
  [[nodiscard]] Value value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] Shape shape(ValueId id) const { return value(id).shape; }

  ValueId add_input(const std::string& name, Shape shape, DType dtype) {
    graph_.inputs.push_back(add_value(name, std::move(shape), dtype));
    return graph_.inputs.back();
  }
  /// A call of one output. `args`: from the schema's first on.
  ValueId call(const std::string& op, std::vector<Arg> args, Shape shape, DType dtype) {
    const ValueId id = add_value("loss." + std::to_string(graph_.nodes.size()), std::move(shape), dtype);
    graph_.nodes.push_back({"aten::" + op, std::move(args), {id}, "loss", "train.loss"});
    return id;
  }
  ValueId call(const std::string& op, std::vector<Arg> args, Shape shape) {
    return call(op, std::move(args), std::move(shape), dtype_);
  }
  /// A pointwise call, whose result has the first argument's shape.
  ValueId map(const std::string& op, std::vector<Arg> args) {
    Shape same = shape(std::get<ValueId>(args.front()));  // before the arguments move
    return call(op, std::move(args), std::move(same));
  }

 private:
  ValueId add_value(const std::string& name, Shape shape, DType dtype) {
    graph_.values.push_back({name, std::move(shape), dtype});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  Graph& graph_;
  DType dtype_;
};

}  // namespace hfta::fusion
