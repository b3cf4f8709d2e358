#include "fusion/passes/rows.hpp"

#include <algorithm>

#include "fusion/graph/uses.hpp"
#include "fusion/op_rows.hpp"
#include "fusion/passes/randomness.hpp"
#include "fusion/passes/row_rules.hpp"
#include "fusion/passes/schema.hpp"

namespace hfta::fusion {
namespace {

RowRule rule_of(Rows rows) {
  const RowRule rule = shape_row_rule(rows);
  return rule != nullptr ? rule : layer_row_rule(rows);
}

// Whether numbers are only sizes of its result, which its declaration shows.
bool takes_sizes(Rows rows) {
  return rows == Rows::kReshaped || rows == Rows::kExpanded || rows == Rows::kFilled || rows == Rows::kCounted;
}

bool depends_on_size(const Value& value) {
  return std::any_of(value.shape.begin(), value.shape.end(), [](std::int64_t size) { return size < 0; });
}

enum class Reading { kTraining, kEvaluation, kShares };

class Proof {
 public:
  Proof(const Graph& graph, const std::vector<bool>& known, Reading reading)
      : graph_(graph),
        in_evaluation_(reading == Reading::kEvaluation),
        in_shares_(reading == Reading::kShares),
        of_(graph.values.size(), DependsOn::kMore),
        at_(graph.values.size()),
        written_(graph) {
    for (const Node& node : graph.nodes) {
      for (const ValueId id : written_by(node)) {
        if (!ignored_write(node)) written_.mark(id);
      }
    }
    for (std::size_t i = 0; i < graph.weights.size(); ++i) {
      if (known[i]) set(graph.weights[i].value, DependsOn::kNothing);
    }
    for (const ValueId id : graph.inputs) {
      if (sample_dim(value(id)) == SampleDim{}) set(id, DependsOn::kSample);
    }
  }

  std::vector<DependsOn> run() {
    for (const Node& node : graph_.nodes) {
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        if (node.outputs[o] != kNoValue) set(node.outputs[o], result_of(node, o));
      }
    }
    return std::move(of_);
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const { return graph_.values[static_cast<std::size_t>(id)]; }
  [[nodiscard]] DependsOn of(ValueId id) const { return of_[static_cast<std::size_t>(id)]; }
  void set(ValueId id, DependsOn depends_on) {
    of_[static_cast<std::size_t>(id)] = written_.marked(id) ? DependsOn::kMore : depends_on;
  }

  // Whether the call's writes are ones that evaluation leaves out.
  [[nodiscard]] bool ignored_write(const Node& node) const { return in_evaluation_ && by_batch_statistics(node); }
  [[nodiscard]] bool is_noise(const Node& node) const {
    return !is_number_op(node.op) && (draws(node) || by_batch_statistics(node)) &&
           (draws_noise(node) || by_batch_statistics(node));
  }

  [[nodiscard]] bool any(const Node& node, bool numbers, DependsOn wanted) const {
    const std::vector<ValueId> inputs = inputs_of(node);
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](ValueId id) { return value(id).number == numbers && of(id) == wanted; });
  }
  [[nodiscard]] bool any_of_batch(const Node& node) const {
    return any(node, true, DependsOn::kMore) || any(node, false, DependsOn::kMore);
  }
  // Numbers of samples, or what is made of them.
  [[nodiscard]] bool any_count(const Node& node) const { return any(node, true, DependsOn::kPlaces); }

  [[nodiscard]] DependsOn number_of(const Node& node) const {
    if (any_of_batch(node)) return DependsOn::kMore;
    const bool looks = node.op == "number::size" || node.op == "number::numel" || node.op == "number::stride";
    if (!looks) return any_count(node) ? DependsOn::kPlaces : DependsOn::kNothing;
    const Value& tensor = value(argument_as<ValueId>(node, 0));
    if (!depends_on_size(tensor)) return DependsOn::kNothing;
    const auto* dim = node.args.size() > 1 ? std::get_if<std::int64_t>(&node.args[1]) : nullptr;
    const auto rank = static_cast<std::int64_t>(tensor.shape.size());
    if (node.op != "number::size" || dim == nullptr || *dim < -rank || *dim >= rank) return DependsOn::kPlaces;
    const std::int64_t size = tensor.shape[static_cast<std::size_t>(*dim < 0 ? *dim + rank : *dim)];
    return size < 0 ? DependsOn::kPlaces : DependsOn::kNothing;
  }

  // Samples lie as the value declares, where nothing tells better.
  [[nodiscard]] DependsOn result_of(const Node& node, std::size_t o) {
    if (const auto at = sample_dim(value(node.outputs[o]))) at_[static_cast<std::size_t>(node.outputs[o])] = *at;
    if (is_number_op(node.op)) return number_of(node);
    if (value(node.outputs[o]).number || (has_hyper(node) && !in_shares_)) return DependsOn::kMore;
    Node still = node;  // as evaluation runs it
    const Rows rows = rows_of(node.op);
    const bool masked = in_shares_ && draws_masks(node);
    if (draws(node) || by_batch_statistics(node)) {
      if (!masked && (!in_evaluation_ || !is_noise(node))) return DependsOn::kMore;
      if (Arg* training = find_argument(still, traits_of(node).training)) *training = false;
    }
    if (!ignored_write(node) && !written_by(node).empty()) return DependsOn::kMore;
    if (any_of_batch(node) || (any_count(node) && !takes_sizes(rows))) return DependsOn::kMore;
    if (rows == Rows::kFilled) return filled(node, o);
    if (rows == Rows::kCounted) return counted(node, o);
    const DependsOn found = by_rule(still, o, rule_of(rows));
    const SampleDim& at = at_[static_cast<std::size_t>(node.outputs[o])];
    const bool counted = found == DependsOn::kSample && at.dim == 0 && at.outer == 1;
    return masked && !counted ? DependsOn::kMore : found;
  }

  // Tensors that it reads give sizes and types alone.
  [[nodiscard]] DependsOn filled(const Node& node, std::size_t o) const {
    const Arg* number = find_argument(node, "fill_value");
    const auto* id = number == nullptr ? nullptr : std::get_if<ValueId>(number);
    if (id != nullptr && of(*id) != DependsOn::kNothing) return DependsOn::kMore;
    if (!depends_on_size(value(node.outputs[o]))) return DependsOn::kNothing;
    return sample_dim(value(node.outputs[o])) ? DependsOn::kSample : DependsOn::kMore;
  }

  [[nodiscard]] DependsOn counted(const Node& node, std::size_t o) const {
    const Value& output = value(node.outputs[o]);
    if (!any_count(node)) return depends_on_size(output) ? DependsOn::kMore : DependsOn::kNothing;
    const auto is = [&](const char* name, std::int64_t wanted) {
      const Arg* arg = find_argument(node, name);
      return arg == nullptr || *arg == Arg(wanted);
    };
    const bool from_zero = is("start", 0) && is("step", 1) && sample_dim(output) == SampleDim{};
    return from_zero && output.shape.size() == 1 ? DependsOn::kPlaces : DependsOn::kMore;
  }

  [[nodiscard]] DependsOn by_rule(const Node& node, std::size_t o, RowRule rule) {
    bool samples = false, places = false;
    std::size_t tensors = 0;
    for (const ValueId id : inputs_of(node)) {
      if (value(id).number) continue;
      ++tensors;
      samples = samples || of(id) == DependsOn::kSample;
      places = places || of(id) == DependsOn::kPlaces;
    }
    const Value& output = value(node.outputs[o]);
    const Rows rows = rows_of(node.op);
    if (!samples && !places && !depends_on_size(output)) return DependsOn::kNothing;
    if (rule == nullptr || (!samples && !places && rows != Rows::kExpanded)) return DependsOn::kMore;
    const bool moves_places = places && rows != Rows::kIndexed;
    if (moves_places) {
      const bool as_they_are = rows == Rows::kReshaped || rows == Rows::kExpanded ||
                               (rows == Rows::kElements && traits_of(node).elements == Elements::kMoved);
      if (!as_they_are || tensors != 1) return DependsOn::kMore;
    }
    std::vector<DependsOn> moved;
    if (moves_places) {
      moved = of_;
      std::replace(moved.begin(), moved.end(), DependsOn::kPlaces, DependsOn::kSample);
    }
    const std::optional<SampleDim> found = rule(RowsCall(graph_, node, moves_places ? moved : of_, at_), o);
    const std::optional<SampleDim> declared = sample_dim(output);
    const bool fits =
        found && declared && found->dim == declared->dim && found->parts * found->outer == declared->parts;
    if (!fits) return DependsOn::kMore;
    at_[static_cast<std::size_t>(node.outputs[o])] = *found;
    return moves_places ? DependsOn::kPlaces : DependsOn::kSample;
  }

  const Graph& graph_;
  bool in_evaluation_, in_shares_;
  std::vector<DependsOn> of_;
  std::vector<SampleDim> at_;  // by value that depends on samples or places
  MemorySets written_;
};

}  // namespace

std::optional<SampleDim> sample_dim(const Value& value) {
  std::optional<SampleDim> found;
  for (std::size_t d = 0; d < value.shape.size(); ++d) {
    if (value.shape[d] >= 0) continue;
    if (found) return std::nullopt;
    found = SampleDim{d, -value.shape[d], 1};
  }
  return found;
}

std::optional<RowsInput> RowsCall::tensor(std::string_view name) const {
  const Arg* arg = find_argument(node_, name);
  const auto* id = arg == nullptr ? nullptr : std::get_if<ValueId>(arg);
  if (id == nullptr || graph_.values[static_cast<std::size_t>(*id)].number) return std::nullopt;
  return input(*id);
}

std::vector<RowsInput> RowsCall::tensors() const {
  std::vector<RowsInput> all;
  for (const ValueId id : inputs_of(node_)) {
    if (!graph_.values[static_cast<std::size_t>(id)].number) all.push_back(input(id));
  }
  return all;
}

std::optional<std::vector<std::int64_t>> RowsCall::integers(std::string_view name) const {
  const Arg* arg = find_argument(node_, name);
  if (arg == nullptr) return std::nullopt;
  if (const auto* one = std::get_if<std::int64_t>(arg)) return std::vector{*one};
  if (const auto* several = std::get_if<std::vector<std::int64_t>>(arg)) return *several;
  const auto* sizes = std::get_if<std::vector<Size>>(arg);
  if (sizes == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Size& size : *sizes) {
    if (size.value != kNoValue) return std::nullopt;
    numbers.push_back(size.number);
  }
  return numbers;
}

std::vector<DependsOn> dependence_of(const Graph& graph, const std::vector<bool>& known) {
  return Proof(graph, known, Reading::kTraining).run();
}

std::vector<DependsOn> dependence_in_evaluation(const Graph& graph, const std::vector<bool>& known) {
  return Proof(graph, known, Reading::kEvaluation).run();
}

std::vector<DependsOn> dependence_in_shares(const Graph& graph) {
  return Proof(graph, std::vector<bool>(graph.weights.size(), true), Reading::kShares).run();
}

}  // namespace hfta::fusion
