// What running a graph once shows of it.
#include "fusion/runnable.hpp"

#include <algorithm>
#include <cmath>

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/array/setting.hpp"

namespace hfta::fusion::testing {
namespace {

// A linear layer of the model's own, and one more call of its answer.
Model with_call(const std::string& op, std::vector<Arg> more) {
  Model model = mlp(DType::kFloat64, OptimizerKind::kSgd);
  Graph& graph = model.graph;
  const ValueId answer = graph.outputs.at(0);
  const auto made = static_cast<ValueId>(graph.values.size());
  graph.values.push_back({"made", graph.values[static_cast<std::size_t>(answer)].shape, DType::kFloat64});
  more.insert(more.begin(), answer);
  graph.nodes.push_back({"aten::" + op, std::move(more), {made}, op, "test"});
  graph.outputs = {made};
  return model;
}

Dataset samples(std::int64_t size) {
  std::vector<double> x(static_cast<std::size_t>(12 * size));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(3 * i));
  std::vector<std::int64_t> y(static_cast<std::size_t>(size), 1);
  return {{{"x", {3, 4}, x}}, {"y", {}, y}, size};
}

bool mixes(const Model& model, std::int64_t size = 8) {
  return check_runnable(model.graph, model.recipe, trial(model, 0).hyper, samples(size), at::kCPU).mixes_samples;
}

}  // namespace

TEST_CASE("a model whose outputs depend on other samples of the batch is told from one whose do not", "[runnable]") {
  const Arg none;
  CHECK_FALSE(mixes(mlp(DType::kFloat64, OptimizerKind::kSgd)));
  CHECK_FALSE(mixes(with_call("softmax.int", {std::int64_t{1}, none})));
  CHECK(mixes(with_call("softmax.int", {std::int64_t{0}, none})));
  CHECK(mixes(with_call("cumsum", {std::int64_t{0}, none})));  // of those before it alone
  CHECK(mixes(with_call("flip", {std::vector<std::int64_t>{0}})));
  CHECK_FALSE(mixes(with_call("softmax.int", {std::int64_t{0}, none}), 1));
  Model fixed = with_call("softmax.int", {std::int64_t{0}, none});
  fixed.graph.fixed_batch = 5;
  CHECK(mixes(fixed));
  CHECK(mixes(fixed, 3));  // repeated
}

TEST_CASE("samples that are mixed are seen behind weights that begin as zeros, and among equal samples", "[runnable]") {
  Model model = with_call("flip", {std::vector<std::int64_t>{0}});
  std::vector<Weight>& weights = model.graph.weights;
  for (std::size_t i = weights.size() - 2; i < weights.size(); ++i)
    weights[i].init = {Init::Kind::kZeros};  // the head's
  CHECK(mixes(model));
  Dataset data = samples(8);
  std::vector<double> x(96, 1.0);
  std::fill(x.begin() + 84, x.end(), 2.0);  // the last sample alone
  data.inputs[0].data = x;
  const Model plain = with_call("softmax.int", {std::int64_t{0}, Arg()});
  CHECK(check_runnable(plain.graph, plain.recipe, trial(plain, 0).hyper, data, at::kCPU).mixes_samples);
}

TEST_CASE("an op without a derivative is named with the place of its call", "[runnable]") {
  const ValueId answer = mlp(DType::kFloat64, OptimizerKind::kSgd).graph.outputs.at(0);
  CHECK_THROWS_WITH(mixes(with_call("heaviside", {answer})),
                    "model: cannot be trained: derivative for aten::heaviside is not implemented; see test: heaviside "
                    "(aten::heaviside)");
}

TEST_CASE("where samples may be mixed, evaluation has the batches of the training", "[runnable]") {
  Recipe recipe;
  recipe.batch_size = 6;
  EpochOptions options;
  CHECK(evaluation_batch(recipe, options, 12) == 256);
  options.may_mix_samples = true;
  CHECK(evaluation_batch(recipe, options, 12) == 6);
  options.fixed_batch = 4;
  CHECK(evaluation_batch(recipe, options, 12) == 4);
}

}  // namespace hfta::fusion::testing
