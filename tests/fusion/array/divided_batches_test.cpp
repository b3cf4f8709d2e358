// Which models' batches ranks may divide.
#include "fusion/divided_batches.hpp"

#include "catch_after_torch.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

using Layers = std::vector<LayerSpec>;

std::string reason_of(const Graph& graph, const Recipe& recipe = {}, std::int64_t batch = 8, int ranks = 2) {
  return why_not_divided(graph, recipe, std::vector<int>(static_cast<std::size_t>(ranks), 1), std::span(&batch, 1));
}

std::string reason_of(const Layers& layers, const Shape& input) {
  return reason_of(build_graph(layers, input, DType::kFloat32));
}

}  // namespace

TEST_CASE("layers that keep samples apart may be divided, dropout among them") {
  CHECK(reason_of({layer("linear", {std::int64_t{4}, std::int64_t{3}}), layer("dropout", {0.5})}, {kBatch, 4}).empty());
  CHECK(reason_of({layer("conv2d", {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}), layer("dropout", {0.5}),
                   layer("max_pool2d", {std::int64_t{2}}), layer("flatten")},
                  {kBatch, 1, 8, 8})
            .empty());
  CHECK(reason_of({layer("layer_norm", {std::int64_t{4}})}, {kBatch, 4}).empty());
}

TEST_CASE("what takes several samples is named") {
  const Layers layers = {layer("linear", {std::int64_t{4}, std::int64_t{3}}), layer("batch_norm1d", {std::int64_t{3}})};
  CHECK(reason_of(layers, {kBatch, 4}) == "aten::batch_norm in layers.1 takes statistics over the whole batch");
  const Graph graph = build_graph(layers, {kBatch, 4}, DType::kFloat32);
  CHECK(reason_of(graph, {}, 8, 1).empty());
}

TEST_CASE("the ranks' shares have to be batches that the model was exported for") {
  Graph graph = build_graph({layer("linear", {std::int64_t{4}, std::int64_t{3}})}, {kBatch, 4}, DType::kFloat32);
  graph.limits.smallest = 3;
  CHECK(reason_of(graph, {}, 8).empty());
  CHECK(reason_of(graph, {}, 5) == "a batch of 5 samples leaves a device 2, and the model wants at least 3 samples");
  graph.limits = {0, {"(N % 2) == 0"}};
  CHECK(reason_of(graph, {}, 8).empty());
  CHECK_THAT(reason_of(graph, {}, 6), Catch::Contains("leaves a device 3"));
  graph.limits = {};
  graph.fixed_batch = 8;
  CHECK(reason_of(graph) == "the model was exported for batches of 8 samples, and for no others");
}

TEST_CASE("a loss of the model's own has to have a part for each sample") {
  Graph graph = build_graph({layer("linear", {std::int64_t{4}, std::int64_t{3}})}, {kBatch, 4}, DType::kFloat32);
  Recipe recipe;
  recipe.loss = Loss::kModel;
  CHECK(reason_of(graph, recipe).empty());
  graph.values.push_back({"mean", {}, DType::kFloat32});
  const ValueId mean = static_cast<ValueId>(graph.values.size()) - 1;
  Node node;
  node.op = "aten::mean";
  node.args = {graph.outputs[0]};
  node.outputs = {mean};
  graph.nodes.push_back(node);
  graph.outputs = {mean};
  CHECK_THAT(reason_of(graph, recipe), Catch::StartsWith("aten::mean"));
}

}  // namespace hfta::fusion::testing
