// The table of losses, and the graphs that with_loss() makes of it. That the numbers are PyTorch's is for
// tests/fusion/eager and tests/losses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/loss.hpp"
#include "fusion/task_graph.hpp"
#include "fusion/verify.hpp"

namespace hfta::fusion {
namespace {

// y = relu(x), and z = abs(y): outputs of a shape, and further ones.
Graph model_of(const Shape& shape, DType dtype = DType::kFloat32) {
  Graph graph;
  graph.values = {{"x", shape, dtype}, {"y", shape, dtype}, {"z", shape, dtype}};
  graph.nodes = {{"aten::relu", {ValueId{0}}, {1}, "body", "net.py:3"},
                 {"aten::abs", {ValueId{1}}, {2}, "body", "net.py:4"}};
  graph.inputs = {0};
  graph.outputs = {1};
  graph.hypers = {{"body.p", 0.5}};
  return graph;
}

Graph with_evaluation(Graph graph) {
  graph.evaluation = std::make_shared<const Graph>(graph);
  return graph;
}

Recipe recipe_of(Loss loss, LossOptions options = {}) {
  Recipe recipe;
  recipe.loss = loss;
  recipe.loss_options = std::move(options);
  return recipe;
}

const Shape& shape_of(const Graph& graph, ValueId id) { return graph.values.at(static_cast<std::size_t>(id)).shape; }
DType dtype_of(const Graph& graph, ValueId id) { return graph.values.at(static_cast<std::size_t>(id)).dtype; }

bool reads(const Loss loss, std::string_view option) {
  for (const std::string_view known : info_of(loss).options) {
    if (known == option) return true;
  }
  return false;
}

LossOptions with(void (*change)(LossOptions&)) {
  LossOptions options;
  change(options);
  return options;
}

// Options that change the graph, each by itself, and none. The output's last dimension is 4 where weights go with it.
std::vector<LossOptions> options_of(Loss loss) {
  const std::vector<std::pair<std::string_view, void (*)(LossOptions&)>> changes = {
      {"class_weight",
       [](LossOptions& o) {
         o.class_weight = {1, 2, 3, 4};
       }},
      {"class_dim", [](LossOptions& o) { o.class_dim = -1; }},
      {"class_dim",
       [](LossOptions& o) {
         o.class_weight = {1, 2, 3, 4};
         o.class_dim = -1;
       }},
      {"pos_weight", [](LossOptions& o) { o.pos_weight = {3}; }},
      {"pos_weight",
       [](LossOptions& o) {
         o.pos_weight = {1, 2, 3, 4};
       }},
      {"log_input", [](LossOptions& o) { o.log_input = false; }},
      {"log_target", [](LossOptions& o) { o.log_target = true; }}};
  std::vector<LossOptions> all(1);
  for (const auto& [option, change] : changes) {
    if (reads(loss, option)) all.push_back(with(change));
  }
  return all;
}

std::string refusal(Graph model, const Recipe& recipe) {
  try {
    static_cast<void>(with_loss(std::move(model), recipe));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

void check_evaluation(const Graph& graph, Loss loss, const Shape& targets) {
  REQUIRE(graph.outputs.size() == (counts_positions(loss) ? 3U : 2U));
  Shape each = targets;
  if (info_of(loss).targets == Targets::kDistributions) each.erase(each.begin() + 1);
  for (std::size_t i = 1; i < graph.outputs.size(); ++i) {
    CHECK(shape_of(graph, graph.outputs[i]) == each);
    CHECK(dtype_of(graph, graph.outputs[i]) == DType::kFloat32);
  }
  REQUIRE(graph.inputs.size() == 2);
  CHECK(shape_of(graph, graph.inputs.back()) == targets);
  CHECK(dtype_of(graph, graph.inputs.back()) == (counts_positions(loss) ? DType::kInt64 : DType::kFloat32));
}

void check_objective(const Graph& graph, Loss loss) {
  REQUIRE(graph.objective.has_value());
  CHECK(shape_of(graph, graph.objective->loss).empty());
  CHECK((graph.objective->weight != kNoValue) == counts_positions(loss));
  if (graph.objective->weight != kNoValue) CHECK(shape_of(graph, graph.objective->weight).empty());
}

}  // namespace

TEST_CASE("every loss has one row, in the enumeration's order", "[losses]") {
  const auto all = losses();
  REQUIRE(all.size() == static_cast<std::size_t>(Loss::kModel) + 1);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].name);
    CHECK(all[i].kind == static_cast<Loss>(i));
    CHECK(info_of(all[i].kind).name == all[i].name);
    CHECK(name_of(all[i].kind) == all[i].name);
    CHECK(names.insert(all[i].name).second);
    CHECK_FALSE(all[i].sentence.empty());
  }
}

TEST_CASE("a loss's numbers have defaults within their limits", "[losses]") {
  const std::set<std::string_view> fields = {"ignore_index", "class_weight", "class_dim", "pos_weight",
                                             "log_input",    "log_target",   "weighted"};
  for (const LossInfo& info : losses()) {
    CAPTURE(info.name);
    std::set<std::string_view> names;
    for (const LossNumber& number : info.numbers) {
      CAPTURE(number.name);
      CHECK(names.insert(number.name).second);
      CHECK_FALSE(number.sentence.empty());
      CHECK((number.least_allowed ? number.fallback >= number.least : number.fallback > number.least));
      CHECK((number.most_allowed ? number.fallback <= number.most : number.fallback < number.most));
    }
    for (const std::string_view option : info.options) {
      CAPTURE(option);
      CHECK(fields.count(option) == 1);
      CHECK(names.insert(option).second);
    }
    CHECK((info.targets == Targets::kClasses) == counts_positions(info.kind));
  }
}

TEST_CASE("every built-in loss makes a valid graph of outputs of any shape", "[losses]") {
  const LossInfo info = GENERATE(from_range(std::vector<LossInfo>(losses().begin(), losses().end() - 1)));
  const bool classes = info.targets == Targets::kClasses;
  const Shape shape = GENERATE(Shape{kBatch}, Shape{kBatch, 4}, Shape{kBatch, 4, 5}, Shape{kBatch, 4, 6, 4},
                               Shape{-3, 4}, Shape{kBatch, 4, 2, 3, 4});
  const bool own_evaluation = GENERATE(false, true);
  if ((classes || info.targets == Targets::kDistributions) && shape.size() < 2) return;  // refused below
  for (const LossOptions& options : options_of(info.kind)) {
    CAPTURE(info.name, to_text(shape), own_evaluation, options.class_dim, options.class_weight, options.pos_weight);
    if (options.class_dim < 0 && shape.back() != 4) continue;
    const Graph model = model_of(shape);
    const Graph graph = with_loss(own_evaluation ? with_evaluation(model) : model, recipe_of(info.kind, options));
    CHECK_NOTHROW(verify(graph));
    check_objective(graph, info.kind);

    REQUIRE(graph.hypers.size() == 1 + info.numbers.size());
    CHECK(graph.hypers.front().path == "body.p");
    for (std::size_t i = 0; i < info.numbers.size(); ++i) {
      CHECK(graph.hypers[i + 1].path == "loss." + std::string(info.numbers[i].name));
      CHECK(graph.hypers[i + 1].value == info.numbers[i].fallback);
    }
    Shape targets = shape;
    if (classes) targets.erase(options.class_dim < 0 ? targets.end() - 1 : targets.begin() + 1);
    REQUIRE((graph.evaluation != nullptr) == own_evaluation);
    const Graph& evaluated = own_evaluation ? *graph.evaluation : graph;
    CHECK_NOTHROW(verify(evaluated));
    check_evaluation(evaluated, info.kind, targets);
    CHECK(evaluated.weights.size() == graph.weights.size());
    CHECK(graph.weights.size() == (options.class_weight.empty() ? 0U : 1U) + (options.pos_weight.empty() ? 0U : 1U));
    for (const Weight& weight : graph.weights) CHECK_FALSE(weight.trained);
  }
}

TEST_CASE("in evaluation a number that is a means of training stands at its own value", "[losses]") {
  const Graph graph = with_loss(with_evaluation(model_of({kBatch, 4})), recipe_of(Loss::kCrossEntropy));
  const auto smoothing = [](const Graph& part) {
    for (const Node& node : part.nodes) {
      if (node.op == "aten::cross_entropy_loss") return node.args.back();
    }
    return Arg();
  };
  CHECK(smoothing(graph) == Arg(HyperRef{1}));
  CHECK(smoothing(*graph.evaluation) == Arg(0.0));
}

TEST_CASE("a loss of the model is reduced to the batch's mean", "[losses]") {
  struct Case {
    Shape loss;
    std::optional<Shape> weight;
    DType weight_dtype = DType::kFloat32;
  };
  const Case tried = GENERATE(values<Case>({{{}, {}},
                                            {{kBatch}, {}},
                                            {{kBatch, 3}, {}},
                                            {{}, Shape{}},
                                            {{}, Shape{}, DType::kInt64},
                                            {{}, Shape{kBatch}, DType::kInt64},
                                            {{kBatch}, Shape{kBatch}},
                                            {{kBatch}, Shape{kBatch}, DType::kBool},
                                            {{kBatch, 3}, Shape{kBatch, 3}},
                                            {{kBatch, 3}, Shape{kBatch}},
                                            {{kBatch}, Shape{}}}));
  const bool own_evaluation = GENERATE(false, true);
  CAPTURE(to_text(tried.loss), own_evaluation);
  Graph model = model_of({kBatch, 3});
  model.values[1].shape = tried.loss;
  model.values[2] = {"z", tried.weight.value_or(Shape{}), tried.weight_dtype};
  model.outputs = tried.weight ? std::vector<ValueId>{1, 2, 0} : std::vector<ValueId>{1, 0};
  Recipe recipe = recipe_of(Loss::kModel);
  recipe.loss_options.weighted = tried.weight.has_value();
  const Graph graph = with_loss(own_evaluation ? with_evaluation(model) : model, recipe);
  CHECK_NOTHROW(verify(graph));
  REQUIRE(graph.objective.has_value());
  CHECK(shape_of(graph, graph.objective->loss).empty());
  CHECK((graph.objective->weight != kNoValue) == tried.weight.has_value());
  if (tried.weight) {
    CHECK(shape_of(graph, graph.objective->weight).empty());
    CHECK(dtype_of(graph, graph.objective->weight) == DType::kFloat32);
  }
  CHECK(graph.inputs.size() == 1);
  CHECK(graph.hypers.size() == 1);
  const std::vector<ValueId> given = tried.weight ? std::vector<ValueId>{1, 2} : std::vector<ValueId>{1};
  CHECK(graph.outputs == given);
  if (own_evaluation) CHECK(graph.evaluation->outputs == given);
}

TEST_CASE("what is made of means over the same targets counts these targets", "[losses]") {
  // Values: the mean over the targets 3, once more, over the targets 5, a weight, the samples' mean.
  constexpr ValueId kMean = 6, kAgain = 7, kOther = 8, kWeight = 9, kOfSamples = 10, kLoss = 11;
  struct Case {
    std::string op;
    std::vector<Arg> args;
    bool counted;
    Shape shape = {};
  };
  const auto list = [](ValueId a, ValueId b) { return std::vector<ValueId>{a, b}; };
  const Case tried = GENERATE_COPY(values<Case>({{"neg", {kMean}, true},
                                                 {"mul.Tensor", {kMean, kWeight}, true},
                                                 {"mul.Tensor", {kWeight, kMean}, true},
                                                 {"mul.Tensor", {kMean, kAgain}, false},
                                                 {"mul.Tensor", {kMean, kOfSamples}, false},
                                                 {"div.Tensor", {kMean, kWeight}, true},
                                                 {"div.Tensor", {kWeight, kMean}, false},
                                                 {"add.Tensor", {kMean, kWeight}, true},
                                                 {"add.Tensor", {kMean, kAgain}, true},
                                                 {"sub.Tensor", {kMean, kOther}, false},
                                                 {"add.Tensor", {kMean, kOfSamples}, false},
                                                 {"add.Tensor", {kWeight, kWeight}, false},
                                                 {"stack", {list(kMean, kAgain)}, false, {2}},
                                                 {"reshape", {kMean, std::vector<std::int64_t>{1}}, true, {1}},
                                                 {"mean", {kMean}, true},
                                                 {"exp", {kMean}, false}}));
  CAPTURE(tried.op);
  Graph model = model_of({kBatch, 3});
  const DType classes = DType::kInt64, real = DType::kFloat32;
  model.values.push_back({"target", {kBatch}, classes});
  model.values.push_back({"more", {kBatch}, real});
  model.values.push_back({"other", {kBatch}, classes});
  for (const char* name : {"mean", "again", "other mean", "weight", "mean of samples"}) {
    model.values.push_back({name, {}, real});
  }
  model.values.push_back({"loss", tried.shape, real});
  for (const ValueId input : {3, 4, 5}) model.inputs.push_back(input);
  model.weights.push_back({"weight", {}, real, {}, true, kWeight, nullptr, {}});
  for (const auto& [target, mean] : {std::pair{3, kMean}, {3, kAgain}, {5, kOther}}) {
    model.nodes.push_back({"aten::cross_entropy_loss", {ValueId{1}, ValueId{target}}, {mean}, "body", "net.py:5"});
  }
  model.nodes.push_back({"aten::mean", {ValueId{4}}, {kOfSamples}, "body", "net.py:6"});
  model.nodes.push_back({"aten::" + tried.op, tried.args, {kLoss}, "body", "net.py:7"});
  model.outputs = {kLoss, 2};
  Recipe recipe = recipe_of(Loss::kModel);
  recipe.terms = {"z"};
  const Graph graph = with_loss(model, recipe);
  CHECK_NOTHROW(verify(graph));
  CHECK((graph.objective->weight != kNoValue) == tried.counted);
}

TEST_CASE("the model's own mean over classes counts the targets that are not ignored", "[losses]") {
  struct Case {
    std::string op;
    std::vector<Arg> more = {};  // behind scores and target
    DType target = DType::kInt64;
    bool cast = false;
    Arg ignored = std::int64_t{-100};
    bool counted = true;
  };
  const Arg none, mean = std::int64_t{1}, sum = std::int64_t{2};
  const Case tried = GENERATE_COPY(
      values<Case>({{"cross_entropy_loss"},
                    {"cross_entropy_loss", {none, mean, std::int64_t{-1}}, DType::kInt64, true, std::int64_t{-1}},
                    {"nll_loss_nd", {none, mean}},
                    {"nll_loss", {}, DType::kInt64, true},
                    {"cross_entropy_loss", {none, sum}, DType::kInt64, false, none, false},
                    {"cross_entropy_loss", {ValueId{6}}},  // weights of classes
                    {"nll_loss_nd", {ValueId{6}, mean}, DType::kUInt8, true},
                    {"cross_entropy_loss", {ValueId{0}}, DType::kInt64, false, none, false},
                    {"cross_entropy_loss", {}, DType::kFloat32, false, none, false},
                    {"mse_loss", {}, DType::kFloat32, false, none, false}}));
  const bool own_evaluation = GENERATE(false, true);
  const std::string then = GENERATE("to.dtype", "mul.Tensor", "div.Tensor", "add.Tensor", "pow.Tensor_Scalar");
  if (!tried.cast && then != "to.dtype") return;
  const bool counted = tried.counted && then != "pow.Tensor_Scalar";
  CAPTURE(tried.op, tried.cast, then, own_evaluation);
  Graph model = model_of({kBatch, 3});
  model.values.push_back({"target", {kBatch}, tried.target});
  model.values.push_back({"mean", {}, DType::kFloat32});
  model.values.push_back({"loss", {}, DType::kFloat32});
  model.values.push_back({"class_weight", {3}, DType::kFloat32});
  model.inputs.push_back(3);
  model.inputs.push_back(6);
  std::vector<Arg> args = {ValueId{1}, ValueId{3}};
  args.insert(args.end(), tried.more.begin(), tried.more.end());
  model.nodes.push_back({"aten::" + tried.op, args, {4}, "body", "net.py:5"});
  const Arg more = then == "to.dtype" ? Arg(DType::kFloat32) : Arg(0.5);
  model.nodes.push_back({"aten::" + then, {ValueId{4}, more}, {5}, "body", "net.py:6"});
  model.outputs = {tried.cast ? 5 : 4, 2};
  Recipe recipe = recipe_of(Loss::kModel);
  recipe.terms = {"z"};
  const Graph graph = with_loss(own_evaluation ? with_evaluation(model) : model, recipe);
  CHECK_NOTHROW(verify(graph));
  REQUIRE((graph.objective->weight != kNoValue) == counted);
  const Graph& evaluated = own_evaluation ? *graph.evaluation : graph;
  CHECK_NOTHROW(verify(evaluated));
  REQUIRE(evaluated.outputs.size() == (counted ? 3 : 2));
  CHECK(evaluated.outputs.front() == model.outputs.front());
  CHECK(evaluated.outputs.back() == 2);
  if (!counted) return;
  CHECK(shape_of(graph, graph.objective->weight).empty());
  CHECK(shape_of(evaluated, evaluated.outputs[1]).empty());
  const auto compares = [](const Node& node) { return node.op == "aten::ne.Scalar"; };
  const auto comparison = std::find_if(evaluated.nodes.begin(), evaluated.nodes.end(), compares);
  REQUIRE(comparison != evaluated.nodes.end());
  CHECK(comparison->args == std::vector<Arg>{ValueId{3}, tried.ignored});
  const bool weighed = !tried.more.empty() && tried.more.front() == Arg(ValueId{6});
  const auto takes = [](const Node& node) { return node.op == "aten::embedding"; };
  CHECK(std::any_of(evaluated.nodes.begin(), evaluated.nodes.end(), takes) == weighed);
}

TEST_CASE("a weight of the loss's shape weighs every element of it", "[losses]") {
  struct Case {
    Shape loss, weight;
    bool by_element;
  };
  const Case tried = GENERATE(values<Case>({{{kBatch}, {kBatch}, true},
                                            {{kBatch, 3}, {kBatch, 3}, true},
                                            {{3}, {3}, true},
                                            {{2, 3}, {2, 3}, true},
                                            {{}, {}, false},
                                            {{kBatch}, {}, false},
                                            {{kBatch, 3}, {kBatch}, false},
                                            {{3}, {kBatch}, false}}));
  CAPTURE(to_text(tried.loss), to_text(tried.weight));
  Graph model = model_of({kBatch, 3});
  model.values[1].shape = tried.loss;
  model.values[2].shape = tried.weight;
  model.outputs = {1, 2};
  Recipe recipe = recipe_of(Loss::kModel);
  recipe.loss_options.weighted = true;
  const Graph graph = with_loss(model, recipe);
  const auto multiplies = [](const Node& node) {
    return node.op == "aten::mul.Tensor" && node.args == std::vector<Arg>{ValueId{1}, ValueId{2}};
  };
  CHECK((std::count_if(graph.nodes.begin(), graph.nodes.end(), multiplies) == 1) == tried.by_element);
  const auto makes_loss = [&](const Node& node) { return node.outputs == std::vector<ValueId>{graph.objective->loss}; };
  const auto last = std::find_if(graph.nodes.begin(), graph.nodes.end(), makes_loss);
  REQUIRE(last != graph.nodes.end());
  const std::string wanted = tried.by_element ? "aten::div.Tensor" : tried.loss.empty() ? "aten::relu" : "aten::mean";
  CHECK(last->op == wanted);
}

TEST_CASE("a metric of more numbers than a store is given is refused before the training", "[losses]") {
  const auto found = [](Loss loss, const MetricSpec& metric, std::int64_t classes) {
    Recipe recipe = recipe_of(loss);
    recipe.metrics = {metric};
    return refusal(model_of({kBatch, classes, 7}), recipe);
  };
  const MetricSpec matrix{.name = "confusion_matrix"}, each{.name = "f1", .average = Average::kNone}, one{.name = "f1"};
  CHECK(found(Loss::kCrossEntropy, matrix, 64).empty());
  CHECK_THAT(found(Loss::kCrossEntropy, matrix, 65), Catch::Contains("confusion_matrix: found 4225 numbers"));
  CHECK(found(Loss::kBceWithLogits, matrix, 65).empty());
  CHECK(found(Loss::kCrossEntropy, each, 4096).empty());
  CHECK_THAT(found(Loss::kBceWithLogits, each, 4097), Catch::Contains("found 4097 numbers"));
  CHECK(found(Loss::kCrossEntropy, one, 1'000'000).empty());
}

TEST_CASE("outputs that a loss cannot take are refused", "[losses]") {
  for (const LossInfo& info : losses()) {
    CAPTURE(info.name);
    const std::string found = refusal(model_of({kBatch}), recipe_of(info.kind));
    if (info.targets == Targets::kClasses || info.targets == Targets::kDistributions) {
      CHECK(found == "model: found output 'y' [N], wanted [N, classes]");
    } else {
      CHECK(found.empty());
    }
  }
  CHECK(refusal(model_of({}, DType::kInt64), recipe_of(Loss::kModel)) ==
        "model: found output 'y' [], wanted a loss of type float32");
  Recipe wide = recipe_of(Loss::kModel);
  wide.dtype = DType::kFloat64;
  CHECK_THAT(refusal(model_of({}), wide), Catch::Contains("wanted a loss of type float64"));
}

}  // namespace hfta::fusion
