#include <utility>

#include "fusion/passes/calls.hpp"
#include "fusion/passes/passes.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/sharing.hpp"

namespace hfta::fusion {
namespace {

class SharedStatistics {
 public:
  explicit SharedStatistics(SpecializedGraph reading)
      : in_(std::move(reading)), sharing_(sharing_of(in_, owned_weights(in_))), out_{in_.graph, {}} {
    out_.graph.nodes.clear();
  }

  SpecializedGraph run() {
    for (std::size_t i = 0; i < in_.graph.nodes.size(); ++i) {
      const Node& node = in_.graph.nodes[i];
      const bool shared = by_batch_statistics(node) && !written_by(node).empty() &&
                          !sharing_.slotwise[static_cast<std::size_t>(node.outputs[0])];
      shared ? add_split(node, in_.index[i]) : add(node, in_.index[i]);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Value& value(const Node& node, std::string_view argument) const {
    return out_.graph.values[static_cast<std::size_t>(argument_of<ValueId>(node, argument))];
  }

  ValueId new_value(std::string name, const Shape& shape, DType dtype) {
    out_.graph.values.push_back({std::move(name), shape, dtype, false});
    return static_cast<ValueId>(out_.graph.values.size()) - 1;
  }

  void add(Node node, int index) {
    out_.graph.nodes.push_back(std::move(node));
    out_.index.push_back(index);
  }

  // Adds a call without gradients, as are all calls that lead to a buffer.
  void add(Node node, std::vector<ValueId> outputs, int index) {
    node.outputs = std::move(outputs);
    node.no_gradient = true;
    add(std::move(node), index);
  }

  // The norm without statistics of its own, and what keeps them.
  void add_split(const Node& node, int index) {
    const RunningStatistics& statistics = traits_of(node).statistics;
    add(call::without_running_statistics(node), index);
    const Arg &x = argument_of(node, "input"), &running_mean = argument_of(node, statistics.mean);
    const Shape sizes = value(node, "input").shape;
    std::vector<std::int64_t> dims = {0};
    for (std::size_t d = 2; d < sizes.size(); ++d) dims.push_back(static_cast<std::int64_t>(d));
    const Value& running = value(node, statistics.mean);
    const auto [shape, dtype] = std::pair{running.shape, running.dtype};
    // Statistics are taken in the running ones' type, as batch_norm does: x may come in a lower precision.
    const ValueId exact = new_value(node.path + ".exact", sizes, dtype);
    add(call::to_dtype(node, x, dtype), {exact}, index);
    const ValueId variance = new_value(node.path + ".batch_var", shape, dtype),
                  mean = new_value(node.path + ".batch_mean", shape, dtype);
    add(call::var_mean(node, exact, dims), {variance, mean}, index);
    const Arg& momentum = argument_of(node, statistics.momentum);
    add(call::lerp_in_place(node, running_mean, mean, momentum), {kNoValue}, index);
    add(call::lerp_in_place(node, argument_of(node, statistics.variance), variance, momentum), {kNoValue}, index);
  }

  SpecializedGraph in_;
  Sharing sharing_;
  SpecializedGraph out_;
};

}  // namespace

SpecializedGraph with_shared_statistics(SpecializedGraph reading) { return SharedStatistics(std::move(reading)).run(); }

}  // namespace hfta::fusion
