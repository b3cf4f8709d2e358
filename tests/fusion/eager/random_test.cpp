// Randomness of a slot's own: the right rates, other numbers in every slot, step and node, and none in evaluation.
#include <cmath>

#include "fusion/eager/program.hpp"
#include "fusion/passes/schema.hpp"
#include "op_cases.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 50, kFeatures = 400;

// A graph of one random op on the samples themselves (ones), or of what it is part of.
Graph one_input(std::vector<Node> nodes, const Shape& shape) {
  Graph graph;
  graph.values = {{"x", shape, DType::kFloat64, false}};
  graph.inputs = {0};
  for (Node& node : nodes) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) graph.values.push_back({"y", shape, DType::kFloat64, false});
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = {static_cast<ValueId>(graph.values.size() - 1)};
  return with_complete_arguments(graph);
}

Node call(const std::string& op, std::vector<Arg> args, ValueId out) {
  return {op, std::move(args), {out}, op, "test", false, {}};
}

// The output for slots with keys 10, 11, ...: [slots, ...]. `weights` are shared.
at::Tensor run(const SpecializedGraph& reading, const at::Tensor& x, int slots, std::uint64_t step,
               const std::vector<at::Tensor>& weights = {}) {
  const Program program(reading, std::vector<bool>(weights.size(), false), chunked(std::max(slots, 1)), at::kCPU);
  const ValueEnv shared = program.share(std::vector<at::Tensor>{x}, weights);
  std::vector<SlotRandom> random;
  for (int b = 0; b < std::max(slots, 1); ++b) random.push_back({10 + static_cast<std::uint64_t>(b), step});
  const std::vector<std::vector<double>> hypers(random.size());
  const std::vector<const ValueEnv*> of_slot(random.size(), &shared);
  const HostNumbers numbers(random, hypers);
  return program.run(of_slot, weights, {slots == 1 ? 0 : slots, numbers, at::kCPU}).front();
}

struct Case {
  const char* name;
  std::vector<Node> nodes;
  double mean, variance;  ///< Of the output's elements in training, for an input of ones.
  double evaluated;       ///< Every element in evaluation.
};

std::vector<Case> cases() {
  const double p = 0.3, q = 1 - p;
  const std::vector<std::int64_t> sizes = {kSamples, kFeatures};
  const ValueId x = 0;
  return {
      {"dropout", {call("aten::dropout", {x, p, true}, 1)}, 1, p / q, 1},
      {"dropout in place",
       {call("aten::clone", {x}, 1), call("aten::dropout_", {ValueId{1}, p, true}, 2)},
       1,
       p / q,
       1},
      {"bernoulli with a rate", {call("aten::bernoulli.p", {x, q}, 1)}, q, p * q, q},
      {"stochastic depth as torchvision writes it",
       {call("aten::empty_like", {x}, 1), call("aten::bernoulli_.float", {ValueId{1}, q}, 2),
        call("aten::div_.Scalar", {ValueId{2}, q}, 3), call("aten::mul.Tensor", {x, ValueId{3}}, 4)},
       1,
       p / q,
       1},
      {"stochastic depth as a floor",
       {call("aten::rand_like", {x}, 1), call("aten::add.Tensor", {ValueId{1}, q}, 2),
        call("aten::floor_", {ValueId{2}}, 3), call("aten::div.Tensor", {x, q}, 4),
        call("aten::mul.Tensor", {ValueId{4}, ValueId{3}}, 5)},
       1,
       p / q,
       1},
      {"rand", {call("aten::rand", {sizes, DType::kFloat64}, 1)}, 0.5, 1.0 / 12, 0.5},
      {"randn", {call("aten::randn_like", {x}, 1)}, 0, 1, 0},
      {"normal_", {call("aten::clone", {x}, 1), call("aten::normal_", {ValueId{1}, 2.0, 0.5}, 2)}, 2, 0.25, 2},
      {"uniform_", {call("aten::clone", {x}, 1), call("aten::uniform_", {ValueId{1}, -1.0, 3.0}, 2)}, 1, 16.0 / 12, 1},
      {"exponential_", {call("aten::clone", {x}, 1), call("aten::exponential_", {ValueId{1}, 2.0}, 2)}, 0.5, 0.25, 0.5},
  };
}

}  // namespace

TEST_CASE("random tensors have their distribution, and are a slot's and a step's own at any width") {
  const at::Tensor ones = at::ones({kSamples, kFeatures}, at::kDouble);
  for (const Case& c : cases()) {
    INFO(c.name);
    const Graph graph = one_input(c.nodes, {kBatch, kFeatures});
    const SpecializedGraph training = specialized(graph, Purpose::kTraining);
    const at::Tensor wide = run(training, ones, 3, 7);
    REQUIRE(wide.sizes() == at::IntArrayRef({3, kSamples, kFeatures}));
    const double n = kSamples * kFeatures;
    for (int b = 0; b < 3; ++b) {
      const at::Tensor own = wide.select(0, b);
      CHECK(own.mean().item<double>() == Approx(c.mean).margin(5 * std::sqrt(c.variance / n)));
      CHECK(own.var().item<double>() == Approx(c.variance).epsilon(0.08));
      CHECK_FALSE(own.equal(wide.select(0, (b + 1) % 3)));
    }
    CHECK(run(training, ones, 1, 7).equal(wide.select(0, 0)));
    CHECK(run(training, ones, 2, 7).equal(wide.narrow(0, 0, 2)));
    CHECK_FALSE(run(training, ones, 1, 8).equal(wide.select(0, 0)));
    const at::Tensor evaluated = run(specialized(graph, Purpose::kEvaluation), ones, 1, 7);
    CHECK((evaluated - c.evaluated).abs().max().item<double>() <= 1e-12);
  }
}

TEST_CASE("two nodes of one op draw different numbers") {
  const Graph graph = one_input({call("aten::rand_like", {ValueId{0}}, 1), call("aten::rand_like", {ValueId{0}}, 2),
                                 call("aten::sub.Tensor", {ValueId{1}, ValueId{2}}, 3)},
                                {kBatch, kFeatures});
  const at::Tensor difference =
      run(specialized(graph, Purpose::kTraining), at::ones({kSamples, kFeatures}, at::kDouble), 2, 0);
  CHECK(difference.abs().min().item<double>() < difference.abs().max().item<double>());
  CHECK(difference.abs().max().item<double>() > 0.5);
}

TEST_CASE("dropout between recurrent layers drops the share it should, in every step of the sequence") {
  // Two layers that hand on what they get: the output is the mask between them.
  const double p = 0.3;
  const std::int64_t features = 30;
  Graph graph;
  graph.values = {{"x", {kBatch, 20, features}, DType::kFloat64, false}};
  graph.inputs = {0};
  std::vector<ValueId> params;
  const std::vector<at::Tensor> weights = {at::eye(features, at::kDouble), at::zeros({features, features}, at::kDouble),
                                           at::eye(features, at::kDouble), at::zeros({features, features}, at::kDouble),
                                           at::zeros({2, kSamples, features}, at::kDouble)};
  for (const at::Tensor& weight : weights) {
    const auto id = static_cast<ValueId>(graph.values.size());
    const std::string name = "w" + std::to_string(id);
    graph.values.push_back({name, weight.sizes().vec(), DType::kFloat64, false});
    graph.weights.push_back({name, weight.sizes().vec(), DType::kFloat64, {}, false, id, nullptr, {}});
    params.push_back(id);
  }
  const ValueId state = params.back();
  params.pop_back();
  graph.values.push_back({"y", {kBatch, 20, features}, DType::kFloat64, false});
  graph.outputs = {static_cast<ValueId>(graph.values.size() - 1)};
  graph.nodes = {{"aten::rnn_relu.input",
                  {ValueId{0}, state, params, false, std::int64_t{2}, p, true, false, true},
                  {graph.outputs[0], kNoValue},
                  "rnn",
                  "test",
                  false,
                  {}}};
  graph = with_complete_arguments(graph);
  const at::Tensor ones = at::ones({kSamples, 20, features}, at::kDouble);
  const SpecializedGraph training = specialized(graph, Purpose::kTraining);
  const at::Tensor wide = run(training, ones, 2, 3, weights);
  for (int b = 0; b < 2; ++b) {
    const at::Tensor own = wide.select(0, b);
    CHECK(own.mean().item<double>() == Approx(1).margin(5 * std::sqrt(p / (1 - p) / static_cast<double>(own.numel()))));
    CHECK(own.eq(0).to(at::kDouble).mean().item<double>() == Approx(p).margin(0.02));
    CHECK_FALSE(own.select(1, 0).equal(own.select(1, 1)));
  }
  CHECK_FALSE(wide.select(0, 0).equal(wide.select(0, 1)));
  CHECK(run(training, ones, 1, 3, weights).equal(wide.select(0, 0)));
  CHECK_FALSE(run(training, ones, 1, 4, weights).equal(wide.select(0, 0)));
  CHECK(run(specialized(graph, Purpose::kEvaluation), ones, 1, 3, weights).equal(ones));
}

TEST_CASE("dropout of attention drops the share it should") {
  // Equal scores and values of one: attention gives the mean of its mask.
  const double p = 0.4;
  const Graph attention = one_input(
      {call("aten::zeros_like", {ValueId{0}}, 1),
       call("aten::scaled_dot_product_attention", {ValueId{1}, ValueId{1}, ValueId{0}, std::monostate(), p}, 2)},
      {kBatch, 8, 40, 6});
  const at::Tensor ones = at::ones({6, 8, 40, 6}, at::kDouble);
  const at::Tensor dropped = run(specialized(attention, Purpose::kTraining), ones, 2, 3);
  const double spread = std::sqrt(p / (1 - p) / (6 * 8 * 40 * 40));
  for (int b = 0; b < 2; ++b) CHECK(dropped.select(0, b).mean().item<double>() == Approx(1).margin(5 * spread));
  CHECK_FALSE(dropped.select(0, 0).equal(dropped.select(0, 1)));
  CHECK(run(specialized(attention, Purpose::kTraining), ones, 1, 3).equal(dropped.select(0, 0)));
  CHECK((run(specialized(attention, Purpose::kEvaluation), ones, 1, 3) - 1).abs().max().item<double>() <= 1e-12);
}

TEST_CASE("a position that sees nothing attends to nothing, with dropout as without") {
  for (const double p : {0.0, 0.4}) {
    CAPTURE(p);
    const Graph attention =
        one_input({call("aten::full_like", {ValueId{0}, -std::numeric_limits<double>::infinity()}, 1),
                   call("aten::scaled_dot_product_attention", {ValueId{0}, ValueId{0}, ValueId{0}, ValueId{1}, p}, 2)},
                  {kBatch, 8, 6, 6});
    const at::Tensor ones = at::ones({6, 8, 6, 6}, at::kDouble);
    CHECK(run(specialized(attention, Purpose::kTraining), ones, 2, 3).eq(0).all().item<bool>());
  }
}

}  // namespace hfta::fusion::testing
