#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.hpp"
#include "fusion/adapters.hpp"
#include "fusion/adapters/peft.hpp"
#include "fusion/exported.hpp"
#include "fusion/verify.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::test {
namespace {

ExportedModel model_of(const std::string& name) {
  return ExportedModel::read(hfta::testing::source_folder() / "tests/fusion/pt2/golden" / (name + ".pt2"));
}

Lora lora_of(std::vector<std::string> targets) {
  Lora lora;
  lora.targets = std::move(targets);
  lora.rank = 2;
  lora.largest_rank = 4;
  lora.alpha = 6;
  lora.where = "s.yaml:3: model.adapters";
  return lora;
}

Graph adapted(const std::string& name, const Lora& lora) {
  ImportOptions options;
  options.lora = lora;
  return model_of(name).graph(options);
}

const Weight& weight_of(const Graph& graph, const std::string& name) {
  const auto found =
      std::find_if(graph.weights.begin(), graph.weights.end(), [&](const Weight& w) { return w.name == name; });
  REQUIRE(found != graph.weights.end());
  return *found;
}

std::string trained(const Graph& graph) {
  std::string names;
  for (const Weight& weight : graph.weights) {
    if (weight.trained) names += weight.name + " ";
  }
  return names;
}

std::string refused(const std::string& name, const Lora& lora) {
  try {
    adapted(name, lora);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct TargetCase {
  std::vector<std::string> targets, train;
  std::string trained;
};

TEST_CASE("adapters are trained, and nothing else but what is named", "[adapters]") {
  const TargetCase one = GENERATE(
      TargetCase{{"first"}, {}, "first.lora_A.weight first.lora_B.weight "},
      TargetCase{{"*st"}, {"head"}, "head.weight head.bias first.lora_A.weight first.lora_B.weight "},
      TargetCase{
          {"conv", "second"},
          {"norm.*"},
          "norm.weight norm.bias conv.lora_A.weight conv.lora_B.weight second.lora_A.weight second.lora_B.weight "},
      TargetCase{
          {"all-linear"}, {}, "first.lora_A.weight first.lora_B.weight second.lora_A.weight second.lora_B.weight "});
  Lora lora = lora_of(one.targets);
  lora.train = one.train;
  const Graph graph = adapted("torch-2.11", lora);
  verify(graph);
  CHECK(trained(graph) == one.trained);
}

TEST_CASE("an adapted layer gives what it gave, plus the scaled product of its adapters", "[adapters]") {
  Lora lora = lora_of({"first"});
  lora.dropout = 0.25;
  const Graph before = model_of("torch-2.11").graph({}), graph = adapted("torch-2.11", lora);
  const auto at = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                               [](const Node& node) { return node.op == "aten::linear" && node.path == "first"; });
  REQUIRE(at != graph.nodes.end());
  CHECK(graph.nodes.size() == before.nodes.size() + 5);
  const std::vector<std::string> ops = {at[1].op, at[2].op, at[3].op, at[4].op, at[5].op};
  CHECK(ops == std::vector<std::string>{"aten::dropout", "aten::linear", "aten::linear", "aten::mul.Tensor",
                                        "aten::add.Tensor"});
  // What was read from the layer is now read from the sum.
  const auto own = std::find_if(before.nodes.begin(), before.nodes.end(),
                                [](const Node& node) { return node.op == "aten::linear" && node.path == "first"; });
  CHECK(at[5].outputs == own->outputs);
  CHECK(at[1].args[0] == own->args[0]);
  REQUIRE(graph.hypers.size() == 3);
  CHECK(graph.hypers[0].value == 2);
  CHECK(graph.hypers[1].value == 3);  // alpha / rank
  CHECK(graph.hypers[2].value == 0.25);
  CHECK(at[1].args[1] == Arg(HyperRef{2}));
  CHECK(at[4].args[1] == Arg(HyperRef{1}));
}

TEST_CASE("a layer whose weight is computed from integers is adapted as one call", "[adapters]") {
  const Graph before = model_of("quantized").graph({});
  const Graph graph = adapted("quantized", lora_of({"up", "mix"}));
  verify(graph);
  CHECK(trained(graph) == "up.lora_A.weight up.lora_B.weight mix.lora_A.weight mix.lora_B.weight ");
  CHECK(weight_of(graph, "up.lora_A.weight").shape == Shape{4, 4});
  CHECK(weight_of(graph, "up.lora_B.weight").shape == Shape{6, 4});
  CHECK(weight_of(graph, "up.lora_A.weight").init.scale == Approx(0.5));
  // Three calls of two layers; what reads a layer's result reads the sum.
  CHECK(graph.nodes.size() == before.nodes.size() + 3 * std::size_t{4});
  std::vector<ValueId> read;
  for (const Node& node : graph.nodes) {
    if (node.op == "aten::relu") read.push_back(std::get<ValueId>(node.args[0]));
  }
  REQUIRE(read.size() == 3);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sum = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const Node& node) { return node.outputs == std::vector<ValueId>{read[i]}; });
    REQUIRE(sum != graph.nodes.end());
    CHECK(sum->path == (i == 0 ? "up.lora_sum" : "mix.lora_sum"));
  }
  // Integers that have no part in a product make no layer.
  CHECK(trained(adapted("quantized", lora_of({"all-linear"}))) ==
        "up.lora_A.weight up.lora_B.weight mix.lora_A.weight mix.lora_B.weight gated.gate.lora_A.weight "
        "gated.gate.lora_B.weight ");
}

TEST_CASE("adapters start as PEFT's do, and are padded to the largest rank", "[adapters]") {
  const Graph graph = adapted("torch-2.11", lora_of({"first", "conv"}));
  const Weight& layer = weight_of(graph, "first.weight");
  const Weight& a = weight_of(graph, "first.lora_A.weight");
  const Weight& b = weight_of(graph, "first.lora_B.weight");
  CHECK(a.shape == Shape{4, layer.shape[1]});
  CHECK(b.shape == Shape{layer.shape[0], 4});
  CHECK(a.init.kind == Init::Kind::kUniform);
  CHECK(a.init.scale == Approx(1 / std::sqrt(static_cast<double>(layer.shape[1]))));
  CHECK(b.init.kind == Init::Kind::kZeros);
  CHECK(a.padding == Padding{0, {0}});
  CHECK(b.padding == Padding{1, {0}});
  const Weight& filter = weight_of(graph, "conv.weight");
  const Weight& conv_a = weight_of(graph, "conv.lora_A.weight");
  CHECK(conv_a.shape == Shape{4, filter.shape[1], filter.shape[2], filter.shape[3]});
  CHECK(weight_of(graph, "conv.lora_B.weight").shape == Shape{filter.shape[0], 4, 1, 1});
  const auto fan_in = static_cast<double>(filter.shape[1] * filter.shape[2] * filter.shape[3]);
  CHECK(conv_a.init.scale == Approx(1 / std::sqrt(fan_in)));
}

TEST_CASE("of padded weights as many parameters count as the trial trains", "[adapters]") {
  Lora lora = lora_of({"first"});
  const Shape layer = weight_of(adapted("torch-2.11", lora), "first.weight").shape;
  for (const int rank : {1, 2, 4}) {
    lora.rank = rank;
    CHECK(adapted("torch-2.11", lora).parameter_count() == rank * (layer[0] + layer[1]));
  }
}

TEST_CASE("the scale follows alpha and the true rank", "[adapters]") {
  Lora lora = lora_of({"first"});
  CHECK(lora_scale(lora) == 3);
  lora.scale = LoraScale::kRankStabilized;
  CHECK(lora_scale(lora) == Approx(6 / std::sqrt(2.0)));
}

TEST_CASE("trials of different ranks, alphas and rates have graphs of one signature", "[adapters]") {
  Lora lora = lora_of({"first"});
  lora.dropout = 0.1;
  const std::string one = adapted("torch-2.11", lora).signature();
  lora.rank = 4;
  lora.alpha = 1;
  lora.dropout = 0.5;
  lora.scale = LoraScale::kRankStabilized;
  CHECK(adapted("torch-2.11", lora).signature() == one);
  lora.largest_rank = 8;
  CHECK(adapted("torch-2.11", lora).signature() != one);
}

struct RefusedCase {
  std::vector<std::string> targets, train;
  std::string message;
};

TEST_CASE("what cannot be adapted is named", "[adapters]") {
  const RefusedCase one = GENERATE(
      RefusedCase{
          {"fisrt"}, {}, "found no linear layer, convolution or embedding 'fisrt' to adapt; did you mean 'first'?"},
      RefusedCase{{"norm"}, {}, "found no linear layer, convolution or embedding 'norm' to adapt"},
      RefusedCase{{"first"}, {"haed"}, "found no parameter 'haed' to train; did you mean 'head'?"},
      RefusedCase{{"first"}, {"first"}, "'first' is among the targets and in train"});
  Lora lora = lora_of(one.targets);
  lora.train = one.train;
  CHECK_THAT(refused("torch-2.11", lora), Catch::Contains("s.yaml:3: model.adapters: " + one.message));
}

// words -> emb -> head, which is called by a module of its own or by hand, with a weight of its own or emb's.
Graph words_graph(bool by_hand, bool tied) {
  Graph graph;
  const auto value = [&](const char* name, Shape shape, DType dtype = DType::kFloat32) {
    graph.values.push_back({name, std::move(shape), dtype});
    return static_cast<ValueId>(graph.values.size()) - 1;
  };
  const auto weight = [&](const char* name, const Shape& shape) {
    Weight one;
    one.name = name;
    one.shape = shape;
    one.value = value(name, shape);
    graph.weights.push_back(one);
    return one.value;
  };
  const ValueId x = value("x", {kBatch, 5}, DType::kInt64);
  graph.inputs = {x};
  const ValueId emb = weight("emb.weight", {11, 8});
  const ValueId head = tied ? emb : weight("head.weight", {11, 8});
  const ValueId h = value("h", {kBatch, 5, 8}), y = value("y", {kBatch, 5, 11});
  graph.nodes.push_back({"aten::embedding", {emb, x}, {h}, "emb", "m.py:1", false, {"weight", "indices"}});
  graph.nodes.push_back(
      {"aten::linear", {h, head, Arg()}, {y}, by_hand ? "" : "head", "m.py:2", false, {"input", "weight", "bias"}});
  graph.outputs = {y};
  return graph;
}

std::vector<std::string> paths_of(const Graph& graph, const std::string& part) {
  std::vector<std::string> paths;
  for (const Node& node : graph.nodes) {
    if (node.path.find(part) != std::string::npos) paths.push_back(node.path);
  }
  return paths;
}

TEST_CASE("a module's own calls are adapted, and where it makes none those that take its weight", "[adapters]") {
  const Lora both = lora_of({"emb"});
  Graph tied = words_graph(true, true);  // the head reads the table by hand: only the embedding is the module's
  insert_lora(tied, both);
  CHECK(paths_of(tied, "lora_A").size() == 1);
  verify(tied);
  Graph by_hand = words_graph(true, false);
  insert_lora(by_hand, lora_of({"head"}));
  CHECK(paths_of(by_hand, "lora_A") == std::vector<std::string>{"head.lora_A"});
  verify(by_hand);
}

TEST_CASE("a weight that is no matrix is no layer's", "[adapters]") {
  Graph graph = words_graph(false, false);
  graph.weights[1].shape = {8};
  graph.values[static_cast<std::size_t>(graph.weights[1].value)].shape = {8};
  CHECK_THROWS_WITH(insert_lora(graph, lora_of({"head"})), Catch::Contains("found no linear layer"));
}

TEST_CASE("an evaluation that reads an adapted layer's weight in another way is refused", "[adapters]") {
  Graph graph = words_graph(false, false);
  Graph other = words_graph(false, false);
  other.nodes[1].op = "aten::mul.Tensor";
  other.nodes[1].names = {"self", "other"};
  other.nodes[1].args.resize(2);
  graph.evaluation = std::make_shared<const Graph>(other);
  CHECK_THROWS_WITH(
      insert_lora(graph, lora_of({"head"})),
      Catch::Contains("'head' is a layer in training, but in evaluation m.py:2: head (aten::mul.Tensor)"));
  graph.evaluation = std::make_shared<const Graph>(words_graph(false, false));
  CHECK_NOTHROW(insert_lora(graph, lora_of({"head"})));
  Graph penalised = words_graph(false, false);  // training reads the weight in that way, too, beside the layer
  Node penalty = other.nodes[1];
  penalty.outputs = {static_cast<ValueId>(penalised.values.size())};
  penalised.values.push_back({"penalty", {kBatch, 5, 11}, DType::kFloat32});
  penalised.nodes.push_back(penalty);
  penalised.evaluation = std::make_shared<const Graph>(penalised);
  Graph alike = penalised;
  CHECK_NOTHROW(insert_lora(alike, lora_of({"head"})));
  penalised.evaluation = std::make_shared<const Graph>(other);
  CHECK_THROWS_WITH(insert_lora(penalised, lora_of({"head"})), Catch::Contains("'head' is a layer in training"));
  Graph tied = words_graph(true, true);  // both read the table by hand
  tied.evaluation = std::make_shared<const Graph>(words_graph(true, true));
  CHECK_NOTHROW(insert_lora(tied, lora_of({"emb"})));
}

TEST_CASE("what other calls make of a layer's weight is known to who merges or saves its adapter", "[adapters]") {
  const Adapter plain = own_adapters(words_graph(false, false), lora_of({"head"})).at(0);
  CHECK((plain.read_by.empty() && plain.called_by.empty() && !plain.prepares_input));
  const Adapter twice = own_adapters(words_graph(true, true), lora_of({"emb"})).at(0);
  CHECK(twice.read_by == "m.py:2: (aten::linear)");
  const Adapter by_hand = own_adapters(words_graph(true, false), lora_of({"head"})).at(0);
  CHECK(by_hand.called_by == "m.py:2: (aten::linear)");
}

TEST_CASE("a parameter is not trained and frozen", "[adapters]") {
  Graph graph = words_graph(false, false);
  Lora lora = lora_of({"emb"});
  lora.train = {"head"};
  const std::vector<std::string> names = {"emb.weight", "head.weight"};
  CHECK_THROWS_WITH(freeze_base(graph, lora, names, {"head.*"}),
                    Catch::Contains("found 'head.weight' in train and in model.freeze"));
  CHECK_NOTHROW(freeze_base(graph, lora, names, {"emb"}));
}

}  // namespace
}  // namespace hfta::fusion::test
