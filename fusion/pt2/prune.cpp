#include "fusion/pt2/prune.hpp"

#include <algorithm>

#include "fusion/graph/uses.hpp"

namespace hfta::fusion::pt2 {
namespace {

class Uses {
 public:
  explicit Uses(std::size_t values) : used_(values, false) {}

  void add(ValueId value) {
    if (value != kNoValue) used_[static_cast<std::size_t>(value)] = true;
  }
  void add(const Node& node) {
    for (const ValueId value : inputs_of(node)) add(value);
  }
  [[nodiscard]] bool has(ValueId value) const { return value != kNoValue && used_[static_cast<std::size_t>(value)]; }

 private:
  std::vector<bool> used_;
};

}  // namespace

void drop_unused(Graph& graph, const std::vector<ValueId>& kept) {
  Uses uses(graph.values.size());
  for (const ValueId value : kept) uses.add(value);
  std::vector<Node> nodes;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto is_used = [&](ValueId value) { return uses.has(value); };
    const bool used = std::any_of(node->outputs.begin(), node->outputs.end(), is_used);
    if (!used && is_number_op(node->op)) continue;
    if (node->outputs.size() > 1) {
      std::replace_if(
          node->outputs.begin(), node->outputs.end(), [&](ValueId value) { return !is_used(value); }, kNoValue);
    }
    uses.add(*node);
    nodes.push_back(std::move(*node));
  }
  std::reverse(nodes.begin(), nodes.end());
  graph.nodes = std::move(nodes);
}

}  // namespace hfta::fusion::pt2
