// A batch of one sample, whose dimension a model may drop.

#include "catch_after_torch.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

// A regression that ends in squeeze(): [N], and of one sample a number.
Model squeezed() {
  Model model = classifier("squeezed",
                           {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{5}}), layer("tanh"),
                            layer("linear", {std::int64_t{5}, std::int64_t{1}})},
                           {3, 4}, 4, DType::kFloat64);
  Graph& graph = model.graph;
  const auto made = static_cast<ValueId>(graph.values.size());
  graph.values.push_back({"made", {kBatch}, DType::kFloat64});
  graph.nodes.push_back({"aten::squeeze", {graph.outputs.at(0)}, {made}, "squeeze", "test"});
  graph.outputs = {made};
  model.recipe.loss = Loss::kMse;
  model.recipe.metrics = {{"mae"}};
  model.batch.parts.front().target = counted_normal({6}, DType::kFloat64, 9);
  return model;
}

}  // namespace

TEST_CASE("one sample is trained and answered as a sample where the model drops its dimension", "[numeric]") {
  const Model model = squeezed();
  for (const int chunk : {kCompiled, 1, 2}) {
    CAPTURE(chunk);
    Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 2, .study_seed = 5});
    for (const int slot : {0, 1}) array.admit(slot, trial(model, slot));
    const bool together = array.slots_per_chunk() > 1;
    Batch batch = model.batch;
    Samples& samples = batch.parts.front();
    const at::Tensor all = array.predict(0, samples);
    for (samples.begin = 0; samples.begin < 6; ++samples.begin) {
      samples.end = samples.begin + 1;
      const at::Tensor one = array.predict(0, samples), wanted = all.narrow(together ? 1 : 0, samples.begin, 1);
      REQUIRE(one.sizes() == wanted.sizes());
      CHECK(one.allclose(wanted, 1e-12, 1e-12));
    }
    samples.begin = 5;
    at::Tensor losses = array.fresh_losses(0).front();
    array.step(0, batch, {}, losses);
    const at::Tensor away = (together ? all : all.unsqueeze(0)).select(1, 5) - samples.target.range(5, 6);
    CHECK(losses[0].allclose(away.square(), 1e-12, 1e-12));
    CHECK(losses[1].eq(1).all().item<bool>());
  }
}

}  // namespace hfta::fusion::testing
