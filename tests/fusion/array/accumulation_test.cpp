// Steps by the gradients of several batches: those of all their samples, whatever runs them and whoever trains beside.
#include <limits>

#include "catch_after_torch.hpp"
#include "models.hpp"
#include "setting.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;  // of 1, 2 and 3 batches a step
constexpr std::int64_t kIgnored = -100;

// The samples [begin, end) of the data.
Batch batch_of(const DeviceData& data, std::int64_t begin, std::int64_t end) {
  return {{Samples{data.inputs, data.target, {}, begin, end}}};
}

// No optimizer state: a step is the gradient, so that no rounding of it is made larger.
Model plain_sgd(Loss loss = Loss::kCrossEntropy) {
  Model model = mlp(DType::kFloat64, OptimizerKind::kSgd);
  model.recipe.accumulates = true;
  model.recipe.loss = loss;
  return model;
}

// Squares of a linear layer's answers, each weighed by its sample's first number where that is above 0.
Model weighted_squares() {
  Model model = plain_sgd(Loss::kModel);
  model.graph = build_graph({layer("linear", {std::int64_t{4}, std::int64_t{1}})}, {kBatch, 4}, DType::kFloat64);
  Graph& graph = model.graph;
  const auto call = [&](const std::string& op, std::vector<Arg> args) {
    const auto id = static_cast<ValueId>(graph.values.size());
    graph.values.push_back({op, {kBatch, 1}, DType::kFloat64});
    graph.nodes.push_back({"aten::" + op, std::move(args), {id}, op, "test"});
    return id;
  };
  const ValueId answer = graph.outputs.at(0);
  const ValueId squares = call("mul.Tensor", {answer, answer});
  const ValueId first = call("narrow", {graph.inputs.at(0), std::int64_t{1}, std::int64_t{0}, std::int64_t{1}});
  graph.outputs = {squares, call("relu", {first})};
  model.recipe.loss_options.weighted = true;
  return model;
}

SlotInit unscheduled(const Model& model, int b, std::int64_t batches) {
  SlotInit init = trial(model, b);
  init.hyper.optimizer.lr = 0.1;
  init.hyper.accumulate = batches;
  return init;
}

at::Tensor all_answers(Array& array, int slot, const DeviceData& data) {
  const at::Tensor output = array.predict(slot / array.slots_per_chunk(), batch_of(data, 0, data.size).parts.front());
  return array.slots_per_chunk() == 1 ? output : output.select(0, slot % array.slots_per_chunk());
}

// The model's answers after one optimizer step of each slot's on those batches, which begin at `bounds`.
at::Tensor answers(const Setting& s, int chunk, const std::vector<std::int64_t>& bounds, std::int64_t batches) {
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) array.admit(b, unscheduled(s.model, b, batches));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    static_cast<void>(step_all(array, batch_of(s.train, bounds[i], bounds[i + 1])));
  }
  std::vector<at::Tensor> all;
  for (int b = 0; b < kWidth; ++b) {
    CHECK(array.progress(b).step == 1);
    CHECK(array.progress(b).batches == static_cast<std::int64_t>(bounds.size()) - 1);
    all.push_back(all_answers(array, b, s.train));
  }
  return at::stack(all);
}

}  // namespace

TEST_CASE("several batches accumulated are a step by all of their samples", "[numeric]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  using Bounds = std::vector<std::int64_t>;
  const Bounds bounds = GENERATE(Bounds{0, 4, 8, 12}, Bounds{0, 6, 12}, Bounds{0, 5, 9, 11, 12});
  const std::int64_t ignored = GENERATE(0, 1, 6);  // the first labels: of a batch some, or all
  const Loss loss = GENERATE(Loss::kCrossEntropy, Loss::kFocal);
  Setting s = random_setting(plain_sgd(loss), 4, {3, 4}, {12, 1, 17});
  s.train.target.stored().narrow(0, 0, ignored).fill_(kIgnored);
  const at::Tensor whole = answers(s, chunk, {0, 12}, 1);
  const at::Tensor found = answers(s, chunk, bounds, static_cast<std::int64_t>(bounds.size()) - 1);
  CHECK(relative_difference(found, whole) < 1e-13);
  CHECK(relative_difference(answers(s, chunk, {0, 6}, 1), whole) > 1e-4);
}

TEST_CASE("a batch whose samples all weigh nothing adds nothing to a step", "[numeric]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  Setting s = random_setting(weighted_squares(), 4, {4}, {12, 1, 17});
  const at::Tensor first = s.train.inputs.at(0).stored().select(1, 0);
  first.abs_();
  first.narrow(0, 0, 4).neg_();  // the first batch of three
  const at::Tensor whole = answers(s, chunk, {0, 12}, 1);
  CHECK(relative_difference(answers(s, chunk, {0, 4, 8, 12}, 3), whole) < 1e-13);
  CHECK(relative_difference(answers(s, chunk, {4, 12}, 1), whole) < 1e-13);
  first.fill_(-1);
  CHECK(at::isfinite(answers(s, chunk, {0, 12}, 1)).all().item<bool>());
}

TEST_CASE("what is left of the batches at an epoch's end makes a step") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s = random_setting(accumulating(mlp(DType::kFloat64, OptimizerKind::kAdamW)), 4, {3, 4}, {27, 2, 17});
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  REQUIRE(epochs.steps_per_epoch() == 5);
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) array.admit(b, trial(s.model, b));
  for (int e = 1; e <= 2; ++e) {
    static_cast<void>(epochs.run(array));
    for (int b = 0; b < kWidth; ++b) {
      const std::int64_t updates = std::vector<std::int64_t>{5, 3, 2}.at(static_cast<std::size_t>(b));
      CHECK(epochs.updates_per_epoch(array.init_of(b).hyper) == updates);
      CHECK(array.progress(b).step == e * updates);
      CHECK(array.progress(b).batches == e * 5);
    }
  }
}

TEST_CASE("a slot that accumulates is bit for bit what it is alone, whatever its neighbours do") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s =
      random_setting(accumulating(conv_net(DType::kFloat32, OptimizerKind::kAdam)), 5, {1, 8, 8}, {27, 2, 17});
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  const auto state_of = [&](int slot, bool alone, double neighbours_rate) {
    Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
    for (int b = 0; b < kWidth; ++b) {
      if (alone && b != slot) continue;
      SlotInit init = trial(s.model, b);
      if (b != slot) init.hyper.optimizer.lr = neighbours_rate;
      array.admit(b, init);
    }
    for (int e = 0; e < 2; ++e) static_cast<void>(epochs.run(array));
    return array.extract(slot);
  };
  for (int slot = 0; slot < kWidth; ++slot) {
    const StateBytes alone = state_of(slot, true, 0);
    CHECK(state_of(slot, false, 0.01) == alone);
    CHECK(state_of(slot, false, std::numeric_limits<double>::quiet_NaN()) == alone);
  }
}

TEST_CASE("one batch a step with sums of gradients is a step without, up to rounding", "[numeric]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const auto trained = [&](bool accumulates) {
    Model model = mlp(DType::kFloat64, OptimizerKind::kAdam);
    model.recipe.accumulates = accumulates;
    const Setting s = random_setting(std::move(model), 4, {3, 4}, {27, 2, 17});
    Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = 1, .study_seed = 5});
    array.admit(0, unscheduled(s.model, 0, 1));
    const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
    for (int e = 0; e < 2; ++e) static_cast<void>(epochs.run(array));
    return all_answers(array, 0, s.train).clone();
  };
  CHECK(relative_difference(trained(true), trained(false)) < 1e-12);
}

TEST_CASE("rates by step follow optimizer steps, not batches") {
  const Setting s = random_setting(plain_sgd(), 4, {3, 4}, {12, 3, 17});  // two batches an epoch
  SlotInit init = unscheduled(s.model, 0, 2);
  init.hyper.schedule = {.kind = ScheduleKind::kCosine, .per_step = true};
  Array by_epochs(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  by_epochs.admit(0, init);
  const Epochs epochs(s.model.recipe, {.order = {.shuffle = false}}, s.train, nullptr);
  for (int e = 0; e < 3; ++e) static_cast<void>(epochs.run(by_epochs));

  Array by_hand(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  by_hand.admit(0, init);
  for (int t = 0; t < 3; ++t) {
    const std::vector<double> rates = {learning_rate(init.hyper.schedule, init.hyper.optimizer.lr, t, 3)};
    for (const std::int64_t begin : {0, 6}) {
      std::vector<at::Tensor> losses = by_hand.fresh_losses(0);
      by_hand.step(0, batch_of(s.train, begin, begin + 6), rates, losses);
    }
    by_hand.finish_epoch(0);
  }
  CHECK(by_epochs.extract(0) == by_hand.extract(0));
}

TEST_CASE("sums of gradients are part of a state only in the midst of a step") {
  const Setting s = random_setting(plain_sgd(), 4, {3, 4}, {12, 3, 17});
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  array.admit(0, unscheduled(s.model, 0, 2));
  const std::size_t before = array.extract(0).size();
  static_cast<void>(step_all(array, batch_of(s.train, 0, 6)));
  CHECK(array.extract(0).size() > before + 8 * (12 * 16 + 16 * 16 + 16 * 4));
  static_cast<void>(step_all(array, batch_of(s.train, 6, 12)));
  CHECK(array.extract(0).size() < before + 200);
}

}  // namespace hfta::fusion::testing
