// Calls without a compiler are given to a library in parts; here the library is a small one of the test's own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>

#include "fusion/cpu/aliases.hpp"
#include "fusion/cpu/known.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

const Arg kNone = std::monostate{};

/// What LibTorch keeps for the backward: where an input lies, and here what is to be there still.
class Seen final : public Kept {
 public:
  explicit Seen(std::span<const double> input) : input_(input), values_(input.begin(), input.end()) {}
  void check() const { CHECK(std::equal(values_.begin(), values_.end(), input_.begin())); }

 private:
  std::span<const double> input_;
  std::vector<double> values_;
};

/// Runs calls of aten::erf as y = 3 x + 1, of tensors in double.
class Tripling final : public Part {
 public:
  Tripling(const PartGraph& part) : calls_(part.graph.nodes.size()) {
    for (const Node& node : part.graph.nodes) {
      if (node.op != "aten::erf") throw Error(ErrorKind::kConfig, "the test's library knows no " + node.op);
    }
    const Tensor& x = part.inputs.at(0);
    outputs_.push_back({x.sizes, row_major(x.sizes), DType::kFloat64, {part.graph.weights.at(0).trained}, {false}});
  }

  [[nodiscard]] const std::vector<Output>& outputs() const override { return outputs_; }
  void forward(const Run& run, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
               std::unique_ptr<Kept>& kept) const override {
    const auto* x = run.at<double>(inputs[0]);
    auto* y = run.at<double>(outputs[0]);
    for (std::int64_t i = 0; i < inputs[0].numel(); ++i) {
      y[i] = x[i];
      for (std::size_t c = 0; c < calls_; ++c) y[i] = 3 * y[i] + 1;
    }
    const std::span<const double> seen(x, static_cast<std::size_t>(inputs[0].numel()));
    kept = std::make_unique<Seen>(seen);
  }
  void backward(const Run& run, std::span<const Gradient> outputs, std::span<const Gradient> inputs,
                std::unique_ptr<Kept>& kept) const override {
    REQUIRE(kept != nullptr);
    static_cast<const Seen&>(*kept).check();
    kept.reset();
    const auto* dy = run.at<double>(outputs[0].tensor);
    auto* dx = run.at<double>(inputs[0].tensor);
    for (std::int64_t i = 0; i < outputs[0].tensor.numel(); ++i) {
      dx[i] = (inputs[0].add ? dx[i] : 0) + std::pow(3, static_cast<double>(calls_)) * dy[i];
    }
  }

 private:
  std::size_t calls_;
  std::vector<Output> outputs_;
};

/// Knows one call beforehand: new_zeros, as sevens.
class Sevens final : public KnownValues {
 public:
  void give(const Weight& /*weight*/) override {}
  bool run(const Node& node, std::span<const Tensor> /*shapes*/) override {
    if (node.op != "aten::new_zeros") return false;
    sizes_ = std::get<Ints>(node.args.at(1));
    return true;
  }
  [[nodiscard]] Snapshot snapshot(ValueId /*id*/) const override {
    Snapshot snapshot{sizes_, std::vector<bool>(sizes_.size(), true), DType::kFloat64, {}};
    const double seven = 7;
    snapshot.bytes.resize(sizeof(seven));
    std::memcpy(snapshot.bytes.data(), &seven, sizeof(seven));
    return snapshot;
  }

 private:
  Dims sizes_;
};

class SmallLibrary final : public Library {
 public:
  [[nodiscard]] std::unique_ptr<const Part> part(const PartGraph& part, bool /*training*/) const override {
    return std::make_unique<const Tripling>(part);
  }
  [[nodiscard]] std::unique_ptr<KnownValues> known_values() const override { return std::make_unique<Sevens>(); }
};

const SmallLibrary kLibrary;

CompiledGraph plan_of(const SmallGraph& small) {
  const Graph graph = with_error(small.graph, DType::kFloat64, small.library);
  return compile({.graph = graph,
                  .index = std::vector<int>(graph.nodes.size(), 0),
                  .dtype = DType::kFloat64,
                  .options = {.library = small.library}})
      .plan;
}

SmallGraph with_library() {
  SmallGraph small;
  small.library = &kLibrary;
  return small;
}

Node node_of(const std::string& op, std::vector<Arg> args, std::vector<ValueId> outputs) {
  return {op, std::move(args), std::move(outputs), "", ""};
}

/// Value 0 is a weight; every node makes the next value.
Graph graph_of(const std::vector<std::pair<std::string, std::vector<Arg>>>& calls) {
  Graph graph;
  graph.values.push_back({"w", {4}, DType::kFloat32});
  graph.weights.push_back({"w", {4}, DType::kFloat32, {}, true, 0, nullptr, {}});
  for (const auto& [op, args] : calls) {
    const auto made = static_cast<ValueId>(graph.values.size());
    graph.values.push_back({"v", {4}, DType::kFloat32, op.starts_with("number::")});
    graph.nodes.push_back(node_of(op, args, {made}));
  }
  graph.outputs = {static_cast<ValueId>(graph.values.size()) - 1};
  return graph;
}

}  // namespace

TEST_CASE("calls without a compiler that follow one another are one part, with gradients through it") {
  SmallGraph small = with_library();
  const ValueId x = small.weight("x", {3, 4});
  const ValueId y = small.call("aten::tanh", {x});
  const ValueId z = small.call("aten::erf", {small.call("aten::erf", {y})});
  const ValueId sum = small.call("aten::add.Tensor", {z, y, std::int64_t{1}});
  small.call("aten::mul.Tensor", {sum, small.call("aten::erf", {x})});
  CHECK(plan_of(small).parts == std::vector<std::vector<std::string>>{{"aten::erf"}, {"aten::erf"}});
  check_gradients(small);
}

TEST_CASE("what a part reads is kept until its backward has run") {
  SmallGraph small = with_library();
  ValueId x = small.weight("x", {3, 4});
  for (int i = 0; i < 4; ++i) x = small.call("aten::tanh", {small.call("aten::erf", {x})});
  check_gradients(small);
}

TEST_CASE("what a part reads lies where it was when its backward runs, whatever else is computed again") {
  SmallGraph small = with_library();
  ValueId y = small.weight("x", {6, 40});
  for (const char* name : {"a", "b", "c"}) {
    y = small.call("aten::mm", {y, small.weight(name, {40, 40})});
    y = small.call("aten::tanh", {small.call("aten::mul.Tensor", {y, y})});
    y = small.call("aten::tanh", {small.call("aten::erf", {small.call("aten::relu", {y})})});
  }
  small.call("aten::mm", {y, small.weight("v", {40, 3})});
  const Graph graph = with_error(small.graph, DType::kFloat64, small.library);
  const CompiledGraph plan = compile({.graph = graph,
                                      .index = std::vector<int>(graph.nodes.size(), 0),
                                      .dtype = DType::kFloat64,
                                      .options = {.library = small.library, .recompute = 2}})
                                 .plan;
  CHECK(plan.recomputed > 0);
  check_gradients(small);
}

TEST_CASE("a call whose arguments have no compiler is given to the library too") {
  SmallGraph small = with_library();
  const ValueId x = small.weight("x", {3, 4});
  small.call("aten::elu", {x, 1.0, 2.0, 1.0});
  CHECK_THROWS_WITH(run_training(small), Catch::Contains("the test's library knows no aten::elu"));
}

TEST_CASE("a number that cannot be computed is no library's") {
  SmallGraph small = with_library();
  const ValueId x = small.weight("x", {3, 4});
  const ValueId zero = small.call("number::sub", {std::int64_t{1}, std::int64_t{1}});
  small.graph.values[static_cast<std::size_t>(zero)].number = true;
  const ValueId size = small.call("number::floordiv", {std::int64_t{1}, zero});
  small.graph.values[static_cast<std::size_t>(size)].number = true;
  small.call("aten::mul.Scalar", {x, size});
  CHECK_THROWS_WITH(run_training(small), Catch::Contains("number::floordiv"));
}

TEST_CASE("what is known beforehand is a constant, of which repeated elements are held once") {
  SmallGraph small = with_library();
  const ValueId x = small.weight("x", {3, 4});
  const ValueId sevens = small.call("aten::new_zeros", {x, Ints{3, 4}, kNone, kNone, kNone, kNone});
  small.call("aten::add.Tensor", {x, sevens, std::int64_t{1}});
  const CompiledGraph plan = plan_of(small);
  CHECK(plan.parts.empty());
  REQUIRE(plan.constants.size() == 1);
  CHECK(plan.constants[0].bytes.size() == sizeof(double));
  CHECK(run_training(small).output[5] == small.weights[0][5] + 7);
  check_gradients(small);
}

TEST_CASE("calls under no_grad are compiled, and no gradient flows through them") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 4});
  const ValueId row = small.call("aten::select.int", {x, std::int64_t{0}, std::int64_t{1}});
  small.graph.nodes.back().no_gradient = true;
  const ValueId squared = small.call("aten::mul.Tensor", {row, row});
  small.graph.nodes.back().no_gradient = true;
  const ValueId sum = small.call("aten::add.Tensor", {x, squared, std::int64_t{1}});
  small.call("aten::add.Tensor", {sum, row, std::int64_t{1}});
  const Outcome outcome = run_training(small);
  // Of the mean squared error, through x as it stands in the sum alone.
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    const double expected = 2 * (outcome.output[i] - std::sin(static_cast<double>(i))) / 12;
    CHECK(outcome.gradients[0][i] == Approx(expected));
  }
}

TEST_CASE("which calls are known beforehand") {
  const auto known = [](const std::vector<std::pair<std::string, std::vector<Arg>>>& calls) {
    return known_calls(graph_of(calls));
  };
  using V = ValueId;
  const std::vector<Arg> new_zeros = {V{0}, Ints{4}, kNone, kNone, kNone, kNone};
  const std::vector<Arg> zeros = {Ints{4}, kNone, kNone, kNone, kNone};
  using Known = std::vector<bool>;
  CHECK(known({{"aten::zeros", zeros}, {"aten::neg", {V{1}}}}) == Known{true, true});
  CHECK(known({{"aten::neg", {V{0}}}}) == Known{false});
  CHECK(known({{"aten::new_zeros", new_zeros}, {"aten::add.Tensor", {V{1}, V{0}}}}) == Known{true, false});
  CHECK(known({{"aten::zeros", zeros}, {"aten::bernoulli", {V{1}}}}) == Known{true, false});
  CHECK(known({{"aten::zeros", zeros}, {"aten::mul.Scalar", {V{1}, HyperRef{0}}}}) == Known{true, false});
  // A number of sizes is no obstacle, and not itself a call.
  CHECK(known({{"number::numel", {V{0}}}, {"aten::mul.Scalar", {V{0}, V{1}}}, {"aten::zeros", zeros}}) ==
        Known{false, false, true});
  // Written in place by what is known, and by what is not, also through a view.
  CHECK(known({{"aten::zeros", zeros}, {"aten::fill_.Scalar", {V{1}, 1.0}}}) == Known{true, true});
  CHECK(known({{"aten::zeros", zeros}, {"aten::copy_", {V{1}, V{0}}}}) == Known{false, false});
  CHECK(known({{"aten::zeros", zeros},
               {"aten::neg", {V{1}}},
               {"aten::view", {V{1}, Ints{2, 2}}},
               {"aten::copy_", {V{3}, V{0}}}}) == Known{false, false, false, false});
}

TEST_CASE("which weights are constants") {
  const auto constant = [](const std::function<void(Weight&)>& change,
                           const std::vector<std::pair<std::string, std::vector<Arg>>>& calls = {}) {
    Graph graph = graph_of(calls);
    Weight& weight = graph.weights[0];
    weight.trained = false;
    weight.init.kind = Init::Kind::kStored;
    weight.stored =
        std::make_shared<const StoredTensor>(StoredTensor{{4}, DType::kFloat32, std::vector<std::byte>(16)});
    change(weight);
    return constant_weights(graph) == std::vector<bool>{true};
  };
  const auto as_it_is = [](Weight&) {};
  CHECK(constant(as_it_is));
  CHECK(constant(as_it_is, {{"aten::neg", {ValueId{0}}}}));
  CHECK_FALSE(constant([](Weight& w) { w.trained = true; }));
  CHECK_FALSE(constant([](Weight& w) { w.per_slot = true; }));
  CHECK_FALSE(constant([](Weight& w) { w.stored = nullptr; }));
  CHECK_FALSE(constant([](Weight& w) { w.init.kind = Init::Kind::kJittered; }));
  CHECK_FALSE(constant([](Weight& w) {
    w.stored = std::make_shared<const StoredTensor>(
        StoredTensor{{1 << 19}, DType::kFloat32, std::vector<std::byte>(std::size_t{1} << 21)});
  }));
  CHECK_FALSE(constant(as_it_is, {{"aten::relu_", {ValueId{0}}}}));
  CHECK_FALSE(constant(as_it_is, {{"aten::view", {ValueId{0}, Ints{2, 2}}}, {"aten::relu_", {ValueId{1}}}}));
  CHECK_FALSE(constant(as_it_is, {{"aten::batch_norm", {ValueId{0}, kNone, kNone, ValueId{0}, ValueId{0}}}}));
}

TEST_CASE("which memory is written and seen again") {
  using V = ValueId;
  // 1 = w * 2, 2 = a view of it, 3 = -w, 4 = relu_(2), 5 = 1 + 3
  const Graph graph = graph_of({{"aten::mul.Scalar", {V{0}, 2.0}},
                                {"aten::view", {V{1}, Ints{2, 2}}},
                                {"aten::neg", {V{0}}},
                                {"aten::relu_", {V{2}}},
                                {"aten::add.Tensor", {V{1}, V{3}, std::int64_t{1}}}});
  CHECK(seen_later(graph, 3));
  CHECK(range_of_writes(graph, 3).first == 0);
  CHECK(range_of_writes(graph, 3).last == 3);
  const Graph unseen = graph_of({{"aten::mul.Scalar", {V{0}, 2.0}}, {"aten::relu_", {V{1}}}, {"aten::neg", {V{2}}}});
  CHECK_FALSE(seen_later(unseen, 1));
  const Graph of_weight = graph_of({{"aten::neg", {V{0}}}, {"aten::relu_", {V{0}}}});
  CHECK(seen_later(of_weight, 1));
  // Lists of views, and what gives itself back where there is nothing to do.
  for (const auto* op :
       {"aten::broadcast_tensors", "aten::contiguous", "aten::dropout", "aten::to.dtype", "aten::clone"}) {
    CAPTURE(op);
    CHECK(may_share(op));
  }
  CHECK_FALSE(may_share("aten::neg"));
}

}  // namespace hfta::fusion::cpu::testing
