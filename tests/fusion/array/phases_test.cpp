// Steps of several phases: each trains its own parameters with its own optimizer, whatever runs it.
#include "fusion/passes/phases.hpp"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "adversarial.hpp"
#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/verify.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 3;

Setting float64_setting() { return adversarial_setting(DType::kFloat64, OptimizerKind::kSgd, {16, 2, 5}); }

// A weight of a state.
std::vector<double> values_of(const StateBytes& state, const std::string& name) {
  const SafetensorsFile file = parse_safetensors(state);
  for (const TensorView& tensor : file.tensors) {
    if (tensor.name != name) continue;
    std::vector<double> values(tensor.bytes.size() / sizeof(double));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  FAIL("no tensor " << name);
  return {};
}

// The slot's state after that many batches, as the epoch has them.
StateBytes after(const Setting& s, int chunk, int batches, const std::function<void(int, SlotInit&)>& change,
                 int slot = 1, bool alone = false) {
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) {
    if (alone && b != slot) continue;
    SlotInit init = trial(s.model, b);
    change(b, init);
    array.admit(b, init);
  }
  for (std::int64_t place = 0; place < batches; ++place) {
    Batch batch{{Samples{s.train.inputs, {}, {}, place % 2 * 6, place % 2 * 6 + 6}}};
    batch.place = place;
    array.for_each_chunk([&](int k) {
      std::vector<at::Tensor> losses = array.fresh_losses(k);
      array.step(k, batch, rates_of(array, k), losses);
    });
  }
  return array.extract(slot);
}

const std::function<void(int, SlotInit&)> kAsGiven = [](int, SlotInit&) {};

}  // namespace

TEST_CASE("a phase trains its own parameters, when it has its turn") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s = float64_setting();
  const auto moved = [&](const std::string& name, int before, int batches,
                         const std::function<void(SlotHyper&)>& change) {
    const auto each = [&](int, SlotInit& init) { change(init.hyper); };
    return values_of(after(s, chunk, batches, each), name) != values_of(after(s, chunk, before, each), name);
  };
  const auto as_given = [](SlotHyper&) {};
  const auto without = [](std::size_t phase) {
    return [phase](SlotHyper& hyper) {
      hyper.phases[phase].optimizer.lr = 0;
      for (OptimizerHyper& group : hyper.phases[phase].groups) group.lr = 0;
    };
  };
  CHECK(moved("critic.weight", 0, 1, as_given));
  CHECK_FALSE(moved("generator.weight", 0, 1, as_given));  // it has every second turn
  CHECK(moved("generator.weight", 1, 2, as_given));
  CHECK(moved("generator.norm.weight", 1, 2, as_given));
  CHECK_FALSE(moved("generator.weight", 1, 2, without(1)));
  CHECK_FALSE(moved("critic.weight", 1, 2, without(0)));
  CHECK(moved("generator.weight", 1, 2, without(0)));
  CHECK(moved("generator.norm.running_mean", 0, 1, without(1)));  // the critic's loss runs the generator
}

TEST_CASE("weights are clamped behind a step of their phase, slot by slot") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s = float64_setting();
  const auto largest = [&](double limit) {
    const auto state =
        after(s, chunk, 1, [&](int b, SlotInit& init) { init.hyper.phases[0].clip_weights = b == 1 ? limit : 1e-3; });
    double most = 0;
    for (const double w : values_of(state, "critic.weight")) most = std::max(most, std::abs(w));
    return most;
  };
  CHECK(largest(0.05) == 0.05);
  CHECK(largest(0.2) == 0.2);
  CHECK(largest(100) > 0.2);
}

TEST_CASE("a slot that trains in phases is bit for bit what it is alone, whatever its neighbours do") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s = adversarial_setting(DType::kFloat32, OptimizerKind::kAdamW, {16, 2, 5});
  for (int slot = 0; slot < kWidth; ++slot) {
    const StateBytes alone = after(s, chunk, 5, kAsGiven, slot, true);
    for (const double rate : {0.5, std::numeric_limits<double>::quiet_NaN()}) {
      const auto change = [&](int b, SlotInit& init) {
        if (b != slot) init.hyper.phases[0].optimizer.lr = rate;
      };
      CHECK(after(s, chunk, 5, change, slot) == alone);
    }
  }
}

TEST_CASE("each phase's loss is recorded, over the batches of its turns") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Setting s = float64_setting();
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  for (int b = 0; b < kWidth; ++b) array.admit(b, trial(s.model, b));
  for (const EpochResult& result : epochs.run(array)) {
    CHECK(result.metrics.at("train_loss") == result.metrics.at("train_critic_loss"));
    CHECK(std::isfinite(result.metrics.at("train_generator_loss")));
    CHECK(std::isfinite(result.metrics.at("val_loss")));
    const SlotProgress progress = array.progress(result.slot);
    CHECK(progress.step == 3);
    REQUIRE(progress.later.size() == 1);
    CHECK(progress.later[0].step == 1);
  }
}

TEST_CASE("a phase whose loss depends on none of its parameters is refused") {
  Setting s = float64_setting();
  s.model.recipe.phases[1].params = {"critic.bias", "generator.norm.running_mean"};
  s.model.recipe.phases[1].where = "s.yaml:9: train.phases.1.params";
  CHECK_THROWS_WITH(
      Array(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5}),
      "s.yaml:9: train.phases.1.params: found no trained parameter that 'generator_loss' depends on, wanted "
      "one");
}

TEST_CASE("a trial has numbers for every phase") {
  const Setting s = float64_setting();
  Array array(s.model.graph, s.model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  SlotInit init = trial(s.model, 0);
  init.hyper.phases.pop_back();
  CHECK_THROWS_WITH(array.admit(0, init), Catch::Contains("found numbers of 1 phases, wanted 2"));
}

namespace {

// A graph that is written call by call, with an input x.
struct Sketch {
  Graph graph;
  ValueId x = value("x", {kBatch, 3});
  Sketch() { graph.inputs = {x}; }

  ValueId value(const std::string& name, Shape shape, DType dtype = DType::kFloat64) {
    graph.values.push_back({name, std::move(shape), dtype});
    return static_cast<ValueId>(graph.values.size()) - 1;
  }
  ValueId buffer(const std::string& name, const Shape& shape = {}, DType dtype = DType::kFloat64) {
    Weight weight;
    weight.name = name;
    weight.trained = false;
    weight.shape = shape;
    weight.dtype = dtype;
    weight.value = value(name, shape, dtype);
    graph.weights.push_back(weight);
    return weight.value;
  }
  ValueId call(const std::string& path, const std::string& op, ValueId self, Arg other) {
    const ValueId made = value(path + "." + std::to_string(graph.nodes.size()), {});
    graph.nodes.push_back({op, {self, std::move(other)}, {made}, path, "", false, {"self", "other"}});
    return made;
  }
  ValueId count(const std::string& path, ValueId counter) { return call(path, "aten::add_.Tensor", counter, 1.0); }
  ValueId mean(const std::string& path) { return mean(path, x); }
  ValueId mean(const std::string& path, ValueId of) {
    const ValueId made = value(path + ".mean" + std::to_string(graph.nodes.size()), {});
    graph.nodes.push_back({"aten::mean", {of}, {made}, path, "", false, {"self"}});
    return made;
  }
  ValueId norm(const std::string& path, ValueId running_mean, ValueId running_var) {
    const ValueId made = value(path + ".norm" + std::to_string(graph.nodes.size()), {kBatch, 3});
    graph.nodes.push_back({"aten::batch_norm",
                           {x, Arg(), Arg(), running_mean, running_var, true, 0.1, 1e-5, false},
                           {made},
                           path,
                           "",
                           false,
                           {}});
    return made;
  }
  // The graph of the phase with that loss.
  [[nodiscard]] Graph of(ValueId loss) {
    graph.outputs = {loss};
    graph.objective = Objective{loss};
    Graph own = with_statistics_of_objective(with_complete_arguments(graph));
    CHECK_NOTHROW(verify(own));
    return own;
  }
};

std::string counting_modules(const Graph& graph) {
  std::string paths;
  for (const Node& node : graph.nodes) {
    if (node.op == "aten::add_.Tensor") paths += "[" + node.path + "]";
  }
  return paths;
}

}  // namespace

TEST_CASE("a buffer is counted in by the phases whose loss depends on its module") {
  Sketch sketch;
  const auto module = [&](const std::string& name) {  // the count is read by a call that gives nothing
    (void)sketch.call(name, "aten::mul.Tensor", sketch.count(name, sketch.buffer(name + ".count")), 0.5);
    return sketch.mean(name);
  };
  const ValueId a = module("a"), b = module("b");
  CHECK(counting_modules(sketch.of(a)) == "[a]");
  CHECK(counting_modules(sketch.of(b)) == "[b]");
}

TEST_CASE("a norm that is called twice counts the batches of the calls that a loss depends on") {
  Sketch sketch;
  const ValueId counter = sketch.buffer("d.num_batches_tracked", {}, DType::kInt64);
  const ValueId mean = sketch.buffer("d.running_mean", {3}), variance = sketch.buffer("d.running_var", {3});
  std::vector<ValueId> losses;
  for (int i = 0; i < 2; ++i) {
    (void)sketch.call("d", "aten::add_.Tensor", counter, std::int64_t{1});
    losses.push_back(sketch.mean("", sketch.norm("d", mean, variance)));
  }
  const auto counts = [&](ValueId loss, std::size_t place) {
    return sketch.of(loss).nodes[place].op == "aten::add_.Tensor";
  };
  CHECK(counts(losses[0], 0));
  CHECK_FALSE(counts(losses[0], 3));
  CHECK_FALSE(counts(losses[1], 0));
  CHECK(counts(losses[1], 3));
}

TEST_CASE("calls keep the positions that key their randomness, whatever a phase leaves out") {
  Sketch sketch;
  (void)sketch.count("a", sketch.buffer("a.count"));
  (void)sketch.mean("a");
  const ValueId b = sketch.mean("b");
  const SpecializedGraph alone = specialized(sketch.of(b), Purpose::kTraining);
  REQUIRE(alone.graph.nodes.size() == 1);
  CHECK(alone.index == std::vector<int>{2});
}

TEST_CASE("modules around a needed call count, and so do calls behind those that read the count") {
  Sketch sketch;
  const ValueId around = sketch.buffer("net.count"), late = sketch.buffer("late"), other = sketch.buffer("other.count");
  const ValueId loss = sketch.call("net.layer", "aten::add.Tensor", sketch.mean("net.layer"), late);
  (void)sketch.count("net", around);
  (void)sketch.count("(model)", around);  // as an export names what the model itself does
  (void)sketch.count("elsewhere", late);
  (void)sketch.count("other", other);
  CHECK(counting_modules(sketch.of(loss)) == "[net][(model)][elsewhere]");
}

TEST_CASE("a group of a phase has to have some of the phase's parameters") {
  const Setting s = float64_setting();
  std::vector<std::string> names;
  for (const Weight& weight : s.model.graph.weights) names.push_back(weight.name);
  std::vector<Phase> phases = s.model.recipe.phases;
  CHECK_NOTHROW(check_phases(phases, names, s.model.graph));
  phases[0].groups = {{phases[1].params, "s.yaml:9: groups.0"}};
  CHECK_THROWS_WITH(check_phases(phases, names, s.model.graph),
                    Catch::Contains("s.yaml:9: groups.0: found parameters that the phase does not train"));
}

}  // namespace hfta::fusion::testing
