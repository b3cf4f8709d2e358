#include "fusion/passes/out_of_place.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

class OutOfPlace {
 public:
  explicit OutOfPlace(Graph graph)
      : graph_(std::move(graph)),
        aliases_(graph_),
        made_(graph_.values.size(), -1),
        read_(graph_.values.size(), -1),
        stands_for_(graph_.values.size()) {
    for (std::size_t id = 0; id < stands_for_.size(); ++id) stands_for_[id] = static_cast<ValueId>(id);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const ValueId id : inputs_of(graph_.nodes[i])) read_[at(id)] = static_cast<int>(i);
      for (const ValueId id : graph_.nodes[i].outputs) {
        if (id != kNoValue && made_[at(id)] < 0) made_[at(id)] = static_cast<int>(i);
      }
    }
    for (const ValueId id : graph_.outputs) read_[at(id)] = static_cast<int>(graph_.nodes.size());
    for (std::size_t id = 0; id < made_.size(); ++id) sets_[aliases_.set_of(static_cast<ValueId>(id))].push_back(id);
  }

  Graph run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      for (Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId& id) { id = stands_for_[at(id)]; });
      }
      if (is_replaceable(node, static_cast<int>(i))) replace(node);
    }
    for (ValueId& id : graph_.outputs) id = stands_for_[at(id)];
    return std::move(graph_);
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

  [[nodiscard]] bool is_replaceable(const Node& node, int position) const {
    // Under no_grad the tensor that is written keeps its gradient, and a new one would have none.
    if (is_number_op(node.op) || node.no_gradient || !traits_of(node).in_place || node.outputs.size() != 1 ||
        node.args.empty())
      return false;
    const auto* self = std::get_if<ValueId>(&node.args[0]);
    const std::string plain = out_of_place(node.op);
    if (self == nullptr || node.outputs[0] == *self || node.outputs[0] == kNoValue || plain == node.op) return false;
    if (!has_same_arguments(node, plain) || !keeps_type(node, *self)) return false;
    const auto& members = sets_.at(aliases_.set_of(node.outputs[0]));
    return std::none_of(members.begin(), members.end(), [&](std::size_t id) {
      const auto value = static_cast<ValueId>(id);
      if (made_[id] < 0) return true;  // a weight's or an input's
      return value != original(*self) && value != *self && made_[id] < position && read_[id] >= position;
    });
  }

  // A tensor that is overwritten keeps its type; a new one has the type of all that it is made of, or is boolean.
  [[nodiscard]] bool keeps_type(const Node& node, ValueId self) const {
    constexpr std::array<std::string_view, 10> kComparisons = {"eq", "ne",      "not_equal", "ge", "greater_equal",
                                                               "gt", "greater", "le",        "lt", "less"};
    const std::string_view name = base_name(node.op);
    if (name.starts_with("logical") || name == "less_equal" || name.starts_with("__")) return false;
    if (std::find(kComparisons.begin(), kComparisons.end(), name) != kComparisons.end()) return false;
    const std::vector<ValueId> inputs = inputs_of(node);
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      const Value& value = graph_.values[at(id)];
      return value.number || value.dtype == graph_.values[at(self)].dtype ||
             (value.dtype == DType::kBool && name == "masked_fill");
    });
  }

  // The value that `id` stood for before earlier calls overwrote it.
  [[nodiscard]] ValueId original(ValueId id) const {
    const auto found = originals_.find(id);
    return found == originals_.end() ? id : original(found->second);
  }

  static bool has_same_arguments(const Node& node, const std::string& plain) {
    const auto handle = find_schema(plain);
    if (!handle) return false;
    const auto &a = handle->schema().arguments(), &b = find_op(node).schema().arguments();
    return std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end(),  // dropout names the first `input`, not `self`
                      [](const c10::Argument& x, const c10::Argument& y) { return x.name() == y.name(); });
  }

  // The old value keeps its maker; who reads it behind this call reads the new one.
  void replace(Node& node) {
    const ValueId self = std::get<ValueId>(node.args[0]);
    node.op = out_of_place(node.op);
    for (ValueId& id : stands_for_) {
      if (id == self) id = node.outputs[0];
    }
    originals_[node.outputs[0]] = self;
  }

  Graph graph_;
  Aliases aliases_;
  std::vector<int> made_, read_;  // by value: positions of the first maker and of the last reader; -1: none
  std::vector<ValueId> stands_for_;
  std::map<ValueId, std::vector<std::size_t>> sets_;
  std::map<ValueId, ValueId> originals_;
};

}  // namespace

Graph with_writes_out_of_place(Graph graph) { return OutOfPlace(std::move(graph)).run(); }

}  // namespace hfta::fusion
