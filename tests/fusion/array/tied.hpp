#pragma once
// A model whose stages read more than what the stage before makes.

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models.hpp"

namespace hfta::fusion::testing {

/// Sums that reach over several stages, and a weight that the first and the last layer share.
class Tied {
 public:
  static constexpr std::int64_t kWide = 12;

  Model model(DType dtype, OptimizerKind optimizer) {
    graph_.inputs = {value({kBatch, kWide}, dtype)};
    const ValueId x = graph_.inputs[0], shared = weight("shared", dtype);
    const ValueId a = call("aten::relu", {linear(x, shared)});
    const ValueId b = add(linear(a, weight("second", dtype)), a);
    const ValueId c = add(call("aten::tanh", {linear(b, weight("third", dtype))}), a);
    graph_.outputs = {linear(add(c, x), shared)};
    Model model{"sums and a tied weight", graph_, {}, {}};
    model.recipe.dtype = dtype;
    model.recipe.optimizer = optimizer;
    model.recipe.batch_size = 6;
    model.recipe.metrics = {{"accuracy"}};
    return model;
  }

 private:
  ValueId value(Shape shape, DType dtype) {
    graph_.values.push_back({fmt::format("v{}", graph_.values.size()), std::move(shape), dtype});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }
  ValueId weight(const std::string& name, DType dtype) {
    const ValueId id = value({kWide, kWide}, dtype);
    graph_.weights.push_back({name, {kWide, kWide}, dtype, {Init::Kind::kUniform, 0.4}, true, id, nullptr, {}});
    return id;
  }
  ValueId call(const std::string& op, std::vector<Arg> args) {
    const ValueId out = value({kBatch, kWide}, graph_.values.front().dtype);
    graph_.nodes.push_back({op, std::move(args), {out}, fmt::format("net.{}", graph_.nodes.size()), "net.py:1"});
    return out;
  }
  ValueId linear(ValueId x, ValueId w) { return call("aten::linear", {x, w, std::monostate{}}); }
  ValueId add(ValueId a, ValueId b) { return call("aten::add.Tensor", {a, b}); }

  Graph graph_;
};

}  // namespace hfta::fusion::testing
