#include "fusion/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "fusion/phases.hpp"
#include "fusion/recipe/losses/rows.hpp"
#include "fusion/recipe/mean_weight.hpp"

namespace hfta::fusion {
namespace {

[[noreturn]] void refuse(const Value& output, const std::string& wanted) {
  throw Error(ErrorKind::kConfig,
              fmt::format("model: found output '{}' {}, wanted {}", output.name, to_text(output.shape), wanted));
}

// Checks that outputs are real numbers, which losses and metrics take.
void check_real(const Graph& model) {
  for (const ValueId id : model.outputs) {
    const Value& output = model.values[static_cast<std::size_t>(id)];
    if (is_complex(output.dtype)) {
      refuse(output, "real numbers: its absolute values (.abs()), a part (.real), or pairs (torch.view_as_real)");
    }
  }
}

// A tensor of numbers that slots share.
ValueId add_constant(Graph& graph, const std::string& name, const std::vector<double>& numbers, DType dtype) {
  auto stored = std::make_shared<StoredTensor>();
  stored->shape = {static_cast<std::int64_t>(numbers.size())};
  stored->dtype = DType::kFloat64;
  stored->bytes.resize(numbers.size() * sizeof(double));
  std::memcpy(stored->bytes.data(), numbers.data(), stored->bytes.size());
  graph.values.push_back({name, stored->shape, dtype});
  Weight weight;
  weight.name = name;
  weight.shape = stored->shape;
  weight.dtype = dtype;
  weight.init.kind = Init::Kind::kStored;
  weight.trained = false;
  weight.value = static_cast<ValueId>(graph.values.size()) - 1;
  weight.stored = std::move(stored);
  graph.weights.push_back(std::move(weight));
  return graph.weights.back().value;
}

Shape target_shape(const GraphWriter& graph, ValueId output, Targets targets) {
  Shape shape = graph.shape(output);
  const bool of_classes = targets == Targets::kClasses || targets == Targets::kDistributions;
  if (of_classes && shape.size() < 2) refuse(graph.value(output), "[N, classes]");
  if (targets != Targets::kClasses) return shape;
  shape.erase(shape.begin() + 1);
  return shape;
}

// The output with its classes as dimension 1.
ValueId with_classes_second(GraphWriter& graph, ValueId output) {
  const Shape shape = graph.shape(output);
  if (shape.size() < 3) return output;
  std::vector<std::int64_t> order = {0, static_cast<std::int64_t>(shape.size()) - 1};
  Shape permuted = {shape.front(), shape.back()};
  for (std::size_t d = 1; d + 1 < shape.size(); ++d) {
    order.push_back(static_cast<std::int64_t>(d));
    permuted.push_back(shape[d]);
  }
  return graph.call("permute", {output, order}, permuted);
}

// Finds faults that an evaluation would find only after an epoch.
void check_metrics(const Recipe& recipe, const Shape& output) {
  const std::optional<OutputKind> kind = info_of(recipe.loss).output;
  if (!kind || *kind == OutputKind::kValue || output.size() < 2) return;
  const std::int64_t classes = std::min(output[1], std::int64_t{1} << 30);
  for (const MetricSpec& spec : recipe.metrics) {
    const int indices = index_count(spec);
    if (indices == 1) check_value_count(spec, classes);
    if (indices == 2 && *kind == OutputKind::kClassScores) check_value_count(spec, classes * classes);
  }
}

// Writes a built-in loss into one graph: for training, for evaluation, or for both.
class LossWriter {
 public:
  LossWriter(Graph& graph, const Recipe& recipe, std::size_t first_hyper)
      : recipe_(recipe),
        row_(row_of(recipe.loss)),
        graph_(graph, recipe.dtype),
        site_{graph_, recipe.loss_options, graph.outputs.at(0), kNoValue, {}},
        first_hyper_(first_hyper) {
    const Targets targets = row_.info.targets;
    if (recipe.loss_options.class_dim < 0) site_.output = with_classes_second(graph_, site_.output);
    const DType dtype = targets == Targets::kClasses ? DType::kInt64 : recipe.dtype;
    if (!recipe.loss_options.class_weight.empty()) {
      site_.class_weight = add_constant(graph, "loss.class_weight", recipe.loss_options.class_weight, recipe.dtype);
    }
    if (!recipe.loss_options.pos_weight.empty()) {
      site_.pos_weight = add_constant(graph, "loss.pos_weight", recipe.loss_options.pos_weight, recipe.dtype);
    }
    site_.target = graph_.add_input("loss.target", target_shape(graph_, site_.output, targets), dtype);
    if (counts_positions(recipe.loss)) {
      site_.position_weight =
          position_weight(graph_, site_.target, recipe.loss_options.ignore_index, site_.class_weight);
    }
  }

  void write_objective() {
    set_numbers(false);
    Objective objective{row_.write(site_, Reduction::kMean)};
    if (site_.position_weight != kNoValue) objective.weight = reduced(graph_, site_.position_weight, Reduction::kSum);
    graph_.graph().objective = objective;
  }

  void write_evaluation() {
    set_numbers(true);
    check_metrics(recipe_, graph_.shape(site_.output));
    graph_.graph().outputs = {site_.output, row_.write(site_, Reduction::kNone)};
    if (site_.position_weight != kNoValue) graph_.graph().outputs.push_back(site_.position_weight);
  }

 private:
  void set_numbers(bool evaluation) {
    site_.numbers.clear();
    for (std::size_t i = 0; i < row_.info.numbers.size(); ++i) {
      const LossNumber& number = row_.info.numbers[i];
      const bool literal = evaluation && number.evaluation;
      site_.numbers.push_back(literal ? Arg(*number.evaluation) : Arg(HyperRef{static_cast<int>(first_hyper_ + i)}));
    }
  }

  const Recipe& recipe_;
  const LossRow& row_;
  GraphWriter graph_;
  LossSite site_;
  std::size_t first_hyper_;
};

void add_built_in(Graph& graph, const Recipe& recipe) {
  const std::size_t first = graph.hypers.size();
  for (const LossNumber& number : info_of(recipe.loss).numbers) {
    graph.hypers.push_back({"loss." + std::string(number.name), number.fallback});
  }
  LossWriter writer(graph, recipe, first);
  writer.write_objective();
  if (graph.evaluation == nullptr) return writer.write_evaluation();
  Graph own = *graph.evaluation;
  own.hypers = graph.hypers;
  LossWriter(own, recipe, first).write_evaluation();
  graph.evaluation = std::make_shared<const Graph>(std::move(own));
}

// `first`: of Graph::outputs, the loss.
void add_own(Graph& graph, const Recipe& recipe, std::size_t first) {
  GraphWriter g(graph, recipe.dtype);
  const ValueId loss = graph.outputs.at(first);
  const Shape shape = g.shape(loss);
  if (g.value(loss).dtype != recipe.dtype)
    refuse(g.value(loss), fmt::format("a loss of type {}", name_of(recipe.dtype)));
  const auto mean = [&] { return shape.empty() ? loss : reduced(g, loss, Reduction::kMean); };
  if (!recipe.loss_options.weighted) {
    graph.objective = Objective{mean(), add_mean_weight(g, loss)};
    return;
  }
  if (first + 1 >= graph.outputs.size()) refuse(g.value(loss), "another output behind it: the loss's weight");
  const ValueId given = graph.outputs[first + 1];
  const ValueId weight =
      g.value(given).dtype == recipe.dtype ? given : g.call("to.dtype", {given, recipe.dtype}, g.shape(given));
  const ValueId total = reduced(g, weight, Reduction::kSum);
  const bool by_element = !shape.empty() && g.shape(weight) == shape;
  graph.objective =
      Objective{by_element ? weighted_mean(g, g.map("mul.Tensor", {loss, weight}), total) : mean(), total};
}

void give_only(Graph& graph, std::size_t count) { graph.outputs.resize(std::min(graph.outputs.size(), count)); }

// Sets evaluation's outputs: the first `count`, as the others are losses of later phases, and behind the loss its
// weight, where no output is that and the graph tells it.
void give_evaluated(Graph& graph, const Recipe& recipe, std::size_t count) {
  give_only(graph, count);
  if (recipe.loss_options.weighted) return;
  GraphWriter g(graph, recipe.dtype);
  const ValueId weight = add_mean_weight(g, graph.outputs.at(0));
  if (weight != kNoValue) graph.outputs.insert(graph.outputs.begin() + 1, weight);
}

void set_evaluation(Graph& graph, const Recipe& recipe, std::size_t count) {
  if (graph.evaluation == nullptr) return give_evaluated(graph, recipe, count);
  give_only(graph, count);
  Graph own = *graph.evaluation;
  give_evaluated(own, recipe, count);
  graph.evaluation = std::make_shared<const Graph>(std::move(own));
}

}  // namespace

bool counts_positions(Loss loss) { return info_of(loss).targets == Targets::kClasses; }

Graph with_loss(Graph model, const Recipe& recipe, std::size_t phase) {
  check_real(model);
  if (model.evaluation != nullptr) check_real(*model.evaluation);
  if (recipe.loss != Loss::kModel) {
    add_built_in(model, recipe);
    return model;
  }
  const auto outputs_of = [](bool weighted) -> std::size_t { return weighted ? 2 : 1; };
  const Recipe first = recipe_of_phase(recipe, 0);
  const std::size_t evaluated = outputs_of(first.loss_options.weighted) + recipe.terms.size();
  std::size_t place = phase == 0 ? 0 : evaluated;
  for (std::size_t p = 1; p < phase; ++p) place += outputs_of(recipe.phases.at(p).weighted);
  add_own(model, recipe_of_phase(recipe, phase), place);
  set_evaluation(model, first, evaluated);
  return model;
}

std::int64_t training_batch(const Graph& graph, const Recipe& recipe) {
  return graph.fixed_batch > 0 ? graph.fixed_batch : recipe.batch_size;
}

}  // namespace hfta::fusion
