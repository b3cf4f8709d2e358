// What slots share is held and computed once, and nobody's curve knows of it.
#include "fusion/epochs.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 20;

// A frozen convolution and batch norm in front of a trained head.
Model frozen_backbone() {
  Model model = classifier(
      "frozen backbone",
      {layer("conv2d", {std::int64_t{1}, std::int64_t{4}, std::int64_t{3}}), layer("batch_norm2d", {std::int64_t{4}}),
       layer("relu"), layer("flatten"), layer("dropout", {0.2}), layer("linear", {std::int64_t{144}, std::int64_t{5}})},
      {1, 8, 8}, 5, DType::kFloat64);
  for (Weight& weight : model.graph.weights) weight.trained = weight.trained && weight.name.find("layers.5") == 0;
  model.recipe.epochs = 5;
  return model;
}

struct Data {
  DeviceData train{{counted_normal({kSamples, 1, 8, 8}, DType::kFloat64, 3)}, counted_labels(kSamples, 5, 4), kSamples};
  DeviceData validation{{counted_normal({9, 1, 8, 8}, DType::kFloat64, 5)}, counted_labels(9, 5, 6), 9};
};

}  // namespace

TEST_CASE("a frozen backbone is held once, and run once a step for slots at one epoch") {
  const Model model = frozen_backbone();
  const Data data;
  const int chunk = GENERATE(1, 2, 4);
  Array array(model.graph, model.recipe, {.lowering = chunked(chunk, {}, 2), .width = 4, .study_seed = 5});
  CHECK(array.shares_layers());
  CHECK(array.shared_bytes() >= (4 * 9 + 4 + 8) * 8);
  const Epochs epochs(model.recipe, {}, data.train, &data.validation);
  for (int b = 0; b < 4; ++b) array.admit(b, trial(model, b));
  static_cast<void>(epochs.run(array));
  CHECK(array.shared_runs() == epochs.steps_per_epoch());
  array.clear(1);
  array.admit(1, trial(model, 1));  // now at another epoch than its neighbours
  static_cast<void>(epochs.run(array));
  CHECK(array.shared_runs() == 3 * epochs.steps_per_epoch());
}

TEST_CASE("a slot beside a frozen backbone's other users has the curve it has alone") {
  const Model model = frozen_backbone();
  const Data data;
  const Epochs epochs(model.recipe, {}, data.train, &data.validation);
  const auto curves = [&](int width, const Lowering& lowering) {
    Array array(model.graph, model.recipe, {.lowering = lowering, .width = width, .study_seed = 5});
    std::vector<std::vector<std::map<std::string, double>>> all(4);
    for (int first = 0; first < 4; first += width) {
      for (int b = 0; b < width; ++b) array.admit(b, trial(model, first + b));
      for (int e = 0; e < 3; ++e) {
        for (const EpochResult& r : epochs.run(array))
          all[static_cast<std::size_t>(first + r.slot)].push_back(r.metrics);
      }
      for (int b = 0; b < width; ++b) array.clear(b);
    }
    return all;
  };
  const auto alone = curves(1, chunked(1));
  CHECK(curves(4, chunked(1, {}, 2)) == alone);
  const auto together = curves(4, chunked(4));
  for (std::size_t b = 0; b < 4; ++b) {
    for (std::size_t e = 0; e < 3; ++e) {
      for (const auto& [name, value] : alone[b][e]) CHECK(together[b][e].at(name) == Approx(value).epsilon(1e-10));
    }
  }
}

TEST_CASE("running statistics of a shared batch norm are still each slot's own") {
  const Model model = frozen_backbone();
  const Data data;
  const Epochs epochs(model.recipe, {}, data.train, nullptr);
  Array array(model.graph, model.recipe, {.lowering = chunked(2), .width = 2, .study_seed = 5});
  array.admit(0, trial(model, 0));
  static_cast<void>(epochs.run(array));
  array.admit(1, trial(model, 1));
  static_cast<void>(epochs.run(array));
  Array alone(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  alone.admit(0, trial(model, 1));
  static_cast<void>(epochs.run(alone));
  CHECK(array.extract(1).size() == alone.extract(0).size());
  Samples samples{data.validation.inputs, data.validation.target};
  const at::Tensor found = array.predict(0, samples).select(0, 1), expected = alone.predict(0, samples);
  CHECK(relative_difference(found, expected) <= 1e-10);
}

TEST_CASE("running statistics of a shared batch norm are those of one that nobody shares") {
  Model frozen = frozen_backbone(), trained = frozen_backbone();
  for (Weight& weight : trained.graph.weights) weight.trained = weight.name.find("running") == std::string::npos;
  for (Model* model : {&frozen, &trained}) {  // the same first weights, whoever owns them
    for (Weight& weight : model->graph.weights) {
      if (weight.name.find("layers.0") == 0) weight.init.kind = Init::Kind::kOnes;
    }
  }
  const Data data;
  const Epochs epochs(frozen.recipe, {}, data.train, nullptr);
  std::vector<at::Tensor> answers;
  for (const Model& model : {frozen, trained}) {
    Array array(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
    CHECK(array.shares_layers() == (answers.empty()));
    SlotInit init = trial(model, 0);
    init.hyper.optimizer.lr = 0;  // nothing moves but the statistics
    array.admit(0, init);
    static_cast<void>(epochs.run(array));
    answers.push_back(array.predict(0, {data.validation.inputs, data.validation.target}));
  }
  CHECK(relative_difference(answers[0], answers[1]) <= 1e-12);
}

TEST_CASE("samples that the model writes in place are not changed") {
  Model model = mlp(DType::kFloat64, OptimizerKind::kSgd);
  Node& flatten = model.graph.nodes[0];
  Node in_place{"aten::mul_.Tensor", {model.graph.inputs[0], 3.0}, {}, "first", "test", false, {}};
  model.graph.values.push_back(model.graph.values[static_cast<std::size_t>(model.graph.inputs[0])]);
  in_place.outputs = {static_cast<ValueId>(model.graph.values.size() - 1)};
  flatten.args[0] = in_place.outputs[0];
  model.graph.nodes.insert(model.graph.nodes.begin(), in_place);
  const at::Tensor before = model.batch.parts[0].inputs[0].stored().clone();
  for (const int chunk : {1, 2}) {
    Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 2, .study_seed = 5});
    for (int b = 0; b < 2; ++b) array.admit(b, trial(model, b));
    step_all(array, model.batch);
    static_cast<void>(array.predict(0, model.batch.parts[0]));
    CHECK(model.batch.parts[0].inputs[0].stored().equal(before));
  }
}

}  // namespace hfta::fusion::testing
