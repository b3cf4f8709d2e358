// The list of passes: what each leaves holds together, whatever the model; what it says it does it does.
#include <fstream>
#include <sstream>

#include "fusion/passes/randomness.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/verify.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/eager/op_cases.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr Purpose kPurposes[] = {Purpose::kTraining, Purpose::kTrainingTogether, Purpose::kEvaluation};

// A frozen batch norm before a trained layer: every pass has work.
Model frozen_norm() {
  Model model = classifier(
      "frozen norm",
      {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{8}}), layer("batch_norm1d", {std::int64_t{8}}),
       layer("dropout", {0.2}), layer("linear", {std::int64_t{8}, std::int64_t{4}})},
      {3, 4}, 4, DType::kFloat64);
  for (Weight& weight : model.graph.weights) weight.trained = weight.trained && weight.name.starts_with("layers.4");
  return model;
}

std::vector<Model> models() {
  std::vector<Model> all = {conv_net(DType::kFloat64, OptimizerKind::kSgd), mlp(DType::kFloat64, OptimizerKind::kSgd),
                            frozen_norm()};
  for (const OpCase& op_case : op_cases()) all.push_back(model_of(op_case));
  return all;
}

// What a reading keeps of its model.
void check_kept(const Graph& before, const SpecializedGraph& after) {
  const Graph& graph = after.graph;
  CHECK_NOTHROW(verify(graph));
  CHECK(graph.inputs == before.inputs);
  CHECK(graph.hypers.size() == before.hypers.size());
  REQUIRE(graph.weights.size() == before.weights.size());
  for (std::size_t i = 0; i < graph.weights.size(); ++i) CHECK(graph.weights[i].value == before.weights[i].value);
  CHECK(graph.values.size() >= before.values.size());
  CHECK(graph.values[static_cast<std::size_t>(graph.outputs[0])].shape ==
        before.values[static_cast<std::size_t>(before.outputs[0])].shape);
  REQUIRE(after.index.size() == graph.nodes.size());
  CHECK(std::is_sorted(after.index.begin(), after.index.end()));
  for (const int index : after.index) CHECK((index >= 0 && static_cast<std::size_t>(index) < before.nodes.size()));
  for (const Node& node : graph.nodes) {
    INFO(node.op);
    if (is_number_op(node.op)) continue;
    CHECK(op_traits(node.op) != nullptr);
    CHECK(node.args.size() == find_op(node).schema().arguments().size());
  }
}

Node call(const std::string& op, std::vector<Arg> args) { return {op, std::move(args), {1}, op, "test"}; }

// One call on an input [N, 4], complete in arguments.
Graph graph_of(Node node) {
  Graph graph;
  graph.values = {{"x", {kBatch, 4}, DType::kFloat64, false}, {"y", {kBatch, 4}, DType::kFloat64, false}};
  graph.inputs = {0};
  graph.outputs = {1};
  graph.nodes = {std::move(node)};
  return with_complete_arguments(graph);
}

}  // namespace

TEST_CASE("each pass leaves a graph that holds together and keeps what is the model's") {
  std::map<std::string, int> ran;
  for (const Model& model : models()) {
    const Graph graph = with_complete_arguments(model.graph);
    for (const Purpose purpose : kPurposes) {
      static_cast<void>(specialized(graph, purpose, [&](const Pass& pass, const SpecializedGraph& reading) {
        INFO(model.name << ", after " << pass.name);
        ++ran[pass.name];
        check_kept(graph, reading);
      }));
    }
  }
  for (const Pass& pass : passes()) {
    INFO(pass.name);
    CHECK(ran[pass.name] > 0);
  }
}

TEST_CASE("passes run in the list's order, and a model's own evaluation is taken as it stands") {
  const auto names = [](const Graph& graph, Purpose purpose) {
    std::string all;
    static_cast<void>(specialized(graph, purpose, [&](const Pass& pass, const SpecializedGraph&) {
      all += std::string(all.empty() ? "" : ", ") + pass.name;
    }));
    return all;
  };
  Graph graph = with_complete_arguments(frozen_norm().graph);
  CHECK(names(graph, Purpose::kTraining) == "split-products, prune");
  CHECK(names(graph, Purpose::kTrainingTogether) == "split-products, prune, shared-statistics");
  CHECK(names(graph, Purpose::kEvaluation) == "modes-off, means, buffers-kept, split-products, prune");
  graph.evaluation = std::make_shared<const Graph>(graph);
  CHECK(names(graph, Purpose::kEvaluation) == "buffers-kept, split-products, prune");
}

TEST_CASE("a graph that does not hold together is told with the pass that left it") {
  Graph graph = with_complete_arguments(frozen_norm().graph);
  std::swap(graph.nodes.front(), graph.nodes.back());
  CHECK_THROWS_WITH(specialized(graph, Purpose::kTraining), Catch::StartsWith("pass 'split-products': its graph"));
}

TEST_CASE("evaluation turns off what draws noise or takes the batch's statistics, and nothing else") {
  struct Case {
    Node node;
    bool draws;  ///< In training.
    const char* argument;
    Arg evaluated;
  };
  const ValueId x = 0;
  const auto norm = [&](const char* op, const Arg& statistics) {
    return call(op, {x, {}, {}, statistics, statistics, true, 0.1, 1e-5, true});
  };
  const Case cases[] = {
      {call("aten::dropout", {x, 0.5, true}), true, "train", false},
      {call("aten::dropout", {x, 0.0, true}), false, "train", false},
      {call("aten::feature_alpha_dropout", {x, 0.5, true}), true, "train", false},
      {call("aten::native_dropout", {x, 0.5, true}), true, "train", false},
      {call("aten::rrelu", {x, 0.1, 0.3, true}), true, "training", false},
      {call("aten::rrelu_", {x, 0.1, 0.3, true}), true, "training", false},
      {call("aten::rrelu", {x, 0.1, 0.3, false}), false, "training", false},
      {call("aten::scaled_dot_product_attention", {x, x, x, {}, 0.3}), true, "dropout_p", 0.0},
      {call("aten::scaled_dot_product_attention", {x, x, x, {}, 0.0}), false, "dropout_p", 0.0},
      {norm("aten::batch_norm", x), false, "training", false},
      {norm("aten::batch_norm", {}), false, "training", true},
      {norm("aten::instance_norm", x), false, "use_input_stats", false},
      {norm("aten::instance_norm", {}), false, "use_input_stats", true},
  };
  for (const Case& c : cases) {
    INFO(c.node.op);
    const Graph graph = graph_of(c.node);
    CHECK(draws(graph.nodes[0]) == c.draws);
    const SpecializedGraph evaluation = specialized(graph, Purpose::kEvaluation);
    REQUIRE(evaluation.graph.nodes.size() == 1);
    CHECK(argument_of(evaluation.graph.nodes[0], c.argument) == c.evaluated);
    CHECK_FALSE(draws(evaluation.graph.nodes[0]));
  }
}

TEST_CASE("an op that a model may not use is refused with its place, whoever made the graph") {
  CHECK_THROWS_WITH(
      graph_of(call("aten::as_strided", {ValueId{0}, std::vector<std::int64_t>{4}, std::vector<std::int64_t>{1}})),
      Catch::Contains("test: aten::as_strided") && Catch::Contains("none of those that a model may use"));
}

TEST_CASE("the README of the passes lists them in their order") {
  std::ifstream file(hfta::testing::source_folder() / "fusion/passes/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  std::size_t at = 0;
  for (const Pass& pass : passes()) {
    const std::string row = std::string("| `") + pass.name + "` | " + pass.what + " |";
    INFO(row);
    const std::size_t found = text.str().find(row, at);
    CHECK(found != std::string::npos);
    if (found != std::string::npos) at = found;
  }
}

}  // namespace hfta::fusion::testing
