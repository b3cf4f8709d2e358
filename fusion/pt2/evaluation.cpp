#include "fusion/pt2/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "fusion/graph/uses.hpp"
#include "fusion/pt2/archive.hpp"

namespace hfta::fusion::pt2 {
namespace {

const Value& value_of(const Graph& graph, ValueId id) { return graph.values[static_cast<std::size_t>(id)]; }

ValueId add_value(Graph& graph, const Weight& weight) {
  graph.values.push_back({weight.name, weight.shape, weight.dtype});
  return static_cast<ValueId>(graph.values.size()) - 1;
}

std::vector<std::string> names_of(const Weight& weight) {
  std::vector<std::string> names = {weight.name};
  names.insert(names.end(), weight.tied.begin(), weight.tied.end());
  return names;
}

bool is_constant(const Weight& weight, const Parameters& parameters) {
  return !parameters.buffers.contains(weight.name) &&
         std::find(parameters.names.begin(), parameters.names.end(), weight.name) == parameters.names.end();
}

// A size that depends on the batch may be a number in the graph that was exported for one batch size.
bool same_shape(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](std::int64_t x, std::int64_t y) { return x == y || x < 0 || y < 0; });
}

class Matcher {
 public:
  Matcher(Graph& graph, const Side& training, Graph& evaluation, const Side& evaluated, std::string where)
      : graph_(graph), training_(training), evaluation_(evaluation), evaluated_(evaluated), where_(std::move(where)) {}

  void match() {
    check_state();
    match_inputs();
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) match_output(i);
    match_weights();
    match_batch();
    evaluation_.hypers = graph_.hypers;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(where_, fmt::format("{}; {} and {} have to be exports of one module", what, printable(training_.file),
                             printable(evaluated_.file)));
  }

  // Both archives hold the whole state dict, used or not.
  void check_state() const {
    const auto missing = [this](const Side& has, const Side& lacks) {
      for (const StateEntry& entry : has.parameters.state) {
        const auto is_it = [&](const StateEntry& other) { return other.name == entry.name; };
        if (std::any_of(lacks.parameters.state.begin(), lacks.parameters.state.end(), is_it)) continue;
        refuse(fmt::format("'{}' is in the state dict of {} and not in that of {}", printable(entry.name),
                           printable(has.file), printable(lacks.file)));
      }
    };
    missing(training_, evaluated_);
    missing(evaluated_, training_);
  }

  void match_inputs() {
    std::vector<ValueId> inputs;
    for (const ValueId id : graph_.inputs) {
      const Value& wanted = value_of(graph_, id);
      const auto found = std::find_if(evaluation_.inputs.begin(), evaluation_.inputs.end(),
                                      [&](ValueId e) { return value_of(evaluation_, e).name == wanted.name; });
      if (found == evaluation_.inputs.end()) {
        refuse(fmt::format("{} has no input '{}'", printable(evaluated_.file), printable(wanted.name)));
      }
      const Value& value = value_of(evaluation_, *found);
      if (!same_shape(value.shape, wanted.shape) || value.dtype != wanted.dtype) {
        refuse(fmt::format("input '{}' is {} {} in {}, wanted {} {}", printable(wanted.name), name_of(value.dtype),
                           to_text(value.shape), printable(evaluated_.file), name_of(wanted.dtype),
                           to_text(wanted.shape)));
      }
      inputs.push_back(*found);
    }
    if (inputs.size() != evaluation_.inputs.size()) {
      refuse(fmt::format("{} has {} inputs, wanted {}", printable(evaluated_.file), evaluation_.inputs.size(),
                         inputs.size()));
    }
    evaluation_.inputs = std::move(inputs);
  }

  void match_output(std::size_t i) const {
    const Value& wanted = value_of(graph_, graph_.outputs[i]);
    const Value& found = value_of(evaluation_, evaluation_.outputs.at(i));
    if (same_shape(found.shape, wanted.shape)) return;
    refuse(fmt::format("output '{}' is {} in {}, wanted {}", printable(wanted.name), to_text(found.shape),
                       printable(evaluated_.file), to_text(wanted.shape)));
  }

  void match_weights() {
    for (std::size_t i = 0; i < graph_.weights.size(); ++i) enter(i);
    std::vector<Weight> own = std::move(evaluation_.weights);
    std::vector<std::optional<ValueId>> values(graph_.weights.size());
    for (const Weight& weight : own) {
      const std::size_t index = index_of(weight);
      values.resize(graph_.weights.size());
      // Two names of one tensor here may be two weights of the evaluation graph that hold the same.
      if (values[index]) rename(weight.value, *values[index]);
      if (!values[index]) values[index] = weight.value;
    }
    values.resize(graph_.weights.size());
    evaluation_.weights = graph_.weights;
    for (std::size_t i = 0; i < values.size(); ++i) {
      evaluation_.weights[i].value = values[i] ? *values[i] : add_value(evaluation_, graph_.weights[i]);
    }
  }

  void enter(std::size_t index) {
    for (const std::string& name : names_of(graph_.weights[index])) index_.try_emplace(name, index);
  }

  void rename(ValueId from, ValueId to) {
    for (Node& node : evaluation_.nodes) {
      for (Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId& id) {
          if (id == from) id = to;
        });
      }
    }
    for (ValueId& id : evaluation_.outputs) {
      if (id == from) id = to;
    }
  }

  // Position in graph_.weights of the weight that the evaluation graph means.
  std::size_t index_of(const Weight& weight) {
    if (is_constant(weight, evaluated_.parameters)) return add(weight, "evaluation: " + weight.name);
    std::optional<std::size_t> found;
    for (const std::string& name : names_of(weight)) {
      const std::size_t index = index_of(name);
      if (found && *found != index) {
        refuse(fmt::format("'{}' and '{}' are one tensor in {} and two in {}", printable(weight.name), printable(name),
                           printable(evaluated_.file), printable(training_.file)));
      }
      found = index;
    }
    const Weight& wanted = graph_.weights[*found];
    if (weight.shape != wanted.shape || weight.dtype != wanted.dtype) {
      refuse(fmt::format("'{}' is {} {} in {}, wanted {} {}", printable(weight.name), name_of(weight.dtype),
                         to_text(weight.shape), printable(evaluated_.file), name_of(wanted.dtype),
                         to_text(wanted.shape)));
    }
    return *found;
  }

  std::size_t index_of(const std::string& name) {
    const auto known = index_.find(name);
    if (known != index_.end()) return known->second;
    for (const Weight& weight : training_.parameters.weights) {
      const std::vector<std::string> names = names_of(weight);
      if (is_constant(weight, training_.parameters) || std::count(names.begin(), names.end(), name) == 0) continue;
      return add(weight, weight.name);
    }
    refuse(fmt::format("{} reads '{}', which {} does not have", printable(evaluated_.file), printable(name),
                       printable(training_.file)));
  }

  // One that training does not read, and so does not change.
  std::size_t add(Weight weight, std::string name) {
    weight.name = std::move(name);
    weight.trained = false;
    weight.value = add_value(graph_, weight);
    graph_.weights.push_back(std::move(weight));
    enter(graph_.weights.size() - 1);
    return graph_.weights.size() - 1;
  }

  void match_batch() {
    if (evaluation_.fixed_batch > 0 && evaluation_.fixed_batch != graph_.fixed_batch) {
      refuse(fmt::format("{} was exported at batch size {}, {} {}", printable(evaluated_.file), evaluation_.fixed_batch,
                         printable(training_.file),
                         graph_.fixed_batch > 0 ? fmt::format("at {}", graph_.fixed_batch) : "with a dynamic one"));
    }
    if (evaluation_.largest_batch == 0) return;
    const std::int64_t most = graph_.largest_batch == 0 ? evaluation_.largest_batch : graph_.largest_batch;
    graph_.largest_batch = std::min(most, evaluation_.largest_batch);
  }

  Graph& graph_;
  const Side& training_;
  Graph& evaluation_;
  const Side& evaluated_;
  std::string where_;
  std::map<std::string, std::size_t> index_;  ///< Position in graph_.weights, by every name.
};

}  // namespace

void attach_evaluation(Graph& graph, const Side& training, Graph evaluation, const Side& evaluated,
                       const std::string& where) {
  Matcher(graph, training, evaluation, evaluated, where).match();
  graph.evaluation = std::make_shared<const Graph>(std::move(evaluation));
}

}  // namespace hfta::fusion::pt2
