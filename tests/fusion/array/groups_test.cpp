// Parameters in groups: each with the numbers of its group, whatever runs the step.
#include <functional>
#include <limits>

#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "fusion/data/safetensors.hpp"
#include "models.hpp"
#include "setting.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;

std::vector<StateBytes> trained(const Model& model, int chunk, const std::function<void(int, SlotInit&)>& change) {
  Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) {
    SlotInit init = trial(model, b);
    change(b, init);
    array.admit(b, init);
  }
  for (int s = 0; s < 4; ++s) step_all(array, model.batch);
  std::vector<StateBytes> states;
  for (int b = 0; b < kWidth; ++b) states.push_back(array.extract(b));
  return states;
}

// Names of the weights that differ.
std::vector<std::string> moved(const StateBytes& before, const StateBytes& after) {
  const SafetensorsFile a = parse_safetensors(before), b = parse_safetensors(after);
  std::vector<std::string> names;
  for (const TensorView& tensor : a.tensors) {
    const auto same = std::find_if(b.tensors.begin(), b.tensors.end(),
                                   [&](const TensorView& other) { return other.name == tensor.name; });
    REQUIRE(same != b.tensors.end());
    const bool equal = std::equal(tensor.bytes.begin(), tensor.bytes.end(), same->bytes.begin(), same->bytes.end());
    if (!equal && tensor.name.find("optimizer.") != 0) names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("the numbers of a group are those of its parameters alone") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Model model = in_groups(mlp(DType::kFloat32, OptimizerKind::kAdamW));
  const auto run = [&](int steps, const std::function<void(SlotHyper&)>& change) {
    Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
    SlotInit init = trial(model, 1);
    change(init.hyper);
    array.admit(1, init);
    for (int s = 0; s < steps; ++s) step_all(array, model.batch);
    return array.extract(1);
  };
  const StateBytes before = run(0, [](SlotHyper&) {});
  using Names = std::vector<std::string>;
  CHECK(moved(before, run(2, [](SlotHyper& h) { h.groups[0].lr = 0; })) ==
        Names{"layers.1.weight", "layers.3.weight", "layers.5.weight"});
  CHECK(moved(before, run(2, [](SlotHyper& h) { h.groups[1].lr = 0; })) ==
        Names{"layers.1.bias", "layers.3.bias", "layers.3.weight", "layers.5.bias", "layers.5.weight"});
  CHECK(moved(before, run(2, [](SlotHyper& h) { h.optimizer.lr = 0; })) ==
        Names{"layers.1.bias", "layers.1.weight", "layers.3.bias", "layers.5.bias"});
}

TEST_CASE("groups with the optimizer's numbers, or with none given, change no bit") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Model plain = mlp(DType::kFloat32, OptimizerKind::kSgd), grouped = in_groups(plain);
  const auto expected = trained(plain, chunk, [](int, SlotInit&) {});
  const auto is_expected = [&](const std::function<void(int, SlotInit&)>& change) {
    return trained(grouped, chunk, change) == expected;
  };
  CHECK(is_expected([](int, SlotInit& init) { init.hyper.groups.clear(); }));
  CHECK(is_expected([](int, SlotInit& init) { init.hyper.groups = {init.hyper.optimizer, init.hyper.optimizer}; }));
  CHECK_FALSE(is_expected([](int, SlotInit&) {}));
}

TEST_CASE("a NaN among the numbers of a slot's group stays in that slot") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const auto [member, kind] =
      GENERATE(table<double OptimizerHyper::*, OptimizerKind>({{&OptimizerHyper::lr, OptimizerKind::kAdam},
                                                               {&OptimizerHyper::weight_decay, OptimizerKind::kSgd},
                                                               {&OptimizerHyper::momentum, OptimizerKind::kSgd}}));
  const Model model = in_groups(mlp(DType::kFloat32, kind));
  const auto clean = trained(model, chunk, [](int, SlotInit&) {});
  const auto beside = trained(model, chunk, [&, m = member](int b, SlotInit& init) {
    if (b == 1) init.hyper.groups[1].*m = std::numeric_limits<double>::quiet_NaN();
  });
  CHECK(beside[0] == clean[0]);
  CHECK(beside[2] == clean[2]);
  CHECK(beside[1] != clean[1]);
}

TEST_CASE("each group's rate follows the schedule from its own") {
  const Setting s = random_setting(in_groups(mlp(DType::kFloat64, OptimizerKind::kSgd)), 4, {3, 4}, {12, 3, 17});
  SlotInit init = trial(s.model, 1);
  for (OptimizerHyper& group : init.hyper.groups) group = init.hyper.optimizer;
  init.hyper.groups[0].lr = 0.05;
  init.hyper.groups[1].lr = 0.001;  // below eta_min: its rate rises
  init.hyper.schedule = {.kind = ScheduleKind::kCosine, .per_step = true, .eta_min = 0.002};
  const auto state = [&](const std::function<void(Array&)>& train) {
    Array array(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
    array.admit(0, init);
    train(array);
    return array.extract(0);
  };
  const EpochOptions unshuffled{.order = {.shuffle = false}};
  const StateBytes by_epochs = state([&](Array& array) {
    const Epochs epochs(s.model.recipe, unshuffled, s.train, nullptr);
    for (int e = 0; e < 3; ++e) static_cast<void>(epochs.run(array));
  });
  const StateBytes by_hand = state([&](Array& array) {
    REQUIRE(array.rates_per_slot() == 3);
    for (int t = 0; t < 6; ++t) {
      std::vector<double> rates;
      for (const double base : {init.hyper.optimizer.lr, 0.05, 0.001}) {
        rates.push_back(learning_rate(init.hyper.schedule, base, t, 6));
      }
      const std::int64_t begin = t % 2 * 6;
      const Batch batch{{Samples{s.train.inputs, s.train.target, {}, begin, begin + 6}}};
      std::vector<at::Tensor> losses = array.fresh_losses(0);
      array.step(0, batch, rates, losses);
      if (t % 2 == 1) array.finish_epoch(0);
    }
  });
  CHECK(by_epochs == by_hand);
}

TEST_CASE("more groups' numbers than there are groups are refused") {
  const Model model = in_groups(mlp(DType::kFloat32, OptimizerKind::kSgd));
  Array array(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  SlotInit init = trial(model, 0);
  init.hyper.groups.resize(3);
  CHECK_THROWS_WITH(array.admit(0, init), Catch::Contains("groups of parameters: found 3, wanted at most 2"));
}

}  // namespace hfta::fusion::testing
