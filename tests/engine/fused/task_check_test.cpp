#include "engine/fused/task_check.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "engine/fused/target_check.hpp"
#include "fusion/layers.hpp"

namespace hfta::engine {
namespace {

using fusion::LayerSpec;

fusion::Dataset dataset(std::int64_t n, fusion::Field target) {
  fusion::Dataset data;
  data.size = n;
  data.inputs = {{"x", {4}, std::vector<float>(static_cast<std::size_t>(4 * n), 0.5f)}};
  data.target = std::move(target);
  return data;
}

fusion::Splits labelled(std::vector<std::int64_t> labels) {
  const auto n = static_cast<std::int64_t>(labels.size());
  return {dataset(n, {"y", {}, std::move(labels)}), {}, {}};
}

fusion::Graph net(std::int64_t outputs, bool batch_norm) {
  std::vector<LayerSpec> layers = {{"linear", "", {std::int64_t{4}, std::int64_t{8}}, {}, "c.yaml:3"}};
  if (batch_norm) layers.push_back({"batch_norm1d", "", {std::int64_t{8}}, {}, "c.yaml:4"});
  layers.push_back({"linear", "", {std::int64_t{8}, outputs}, {}, "c.yaml:5"});
  return fusion::build_graph(layers, {fusion::kBatch, 4}, fusion::DType::kFloat32);
}

TaskSpec spec(fusion::Loss loss, int batch_size) {
  TaskSpec task;
  task.recipe.loss = loss;
  task.recipe.batch_size = batch_size;
  task.data.where = "c.yaml:9";
  return task;
}

}  // namespace

TEST_CASE("labels must be classes that the model has") {
  const TaskSpec task = spec(fusion::Loss::kCrossEntropy, 2);
  CHECK_NOTHROW(check_task(task, net(3, false), labelled({0, 1, 2})));
  CHECK_THROWS_WITH(check_task(task, net(3, false), labelled({0, 1, 3})),
                    Catch::Contains("c.yaml:9") && Catch::Contains("label 3") && Catch::Contains("0 to 2"));
  fusion::Splits splits = labelled({0, 1, 2});
  splits.test = labelled({-1, 0}).train;
  CHECK_THROWS_WITH(check_task(task, net(3, false), splits), Catch::Contains("label -1 in the test set"));
}

TEST_CASE("targets of bce_with_logits are probabilities") {
  const TaskSpec task = spec(fusion::Loss::kBceWithLogits, 2);
  CHECK_NOTHROW(check_task(task, net(1, false), {dataset(3, {"y", {}, std::vector<float>{0, 0.5f, 1}}), {}, {}}));
  CHECK_THROWS_WITH(check_task(task, net(1, false), {dataset(2, {"y", {}, std::vector<float>{0, 2}}), {}, {}}),
                    Catch::Contains("target 2") && Catch::Contains("0 to 1"));
}

TEST_CASE("a target must have the output's shape, [N] standing for one column") {
  const TaskSpec task = spec(fusion::Loss::kMse, 2);
  const fusion::Splits column{dataset(3, {"y", {}, std::vector<float>{1, 2, 3}}), {}, {}};
  const fusion::Splits pair{dataset(2, {"y", {2}, std::vector<float>{1, 2, 3, 4}}), {}, {}};
  CHECK_NOTHROW(check_task(task, net(1, false), column));
  CHECK_NOTHROW(check_task(task, net(2, false), pair));
  CHECK_THROWS_WITH(check_task(task, net(2, false), column), Catch::Contains("[N]") && Catch::Contains("[N, 2]"));
  CHECK_THROWS_WITH(check_task(task, net(1, false), pair), Catch::Contains("[N, 2]") && Catch::Contains("[N, 1]"));
}

TEST_CASE("data must have as many inputs as the model") {
  fusion::Splits splits = labelled({0, 1, 2});
  splits.train.inputs.push_back(splits.train.inputs.front());
  CHECK_THROWS_WITH(check_task(spec(fusion::Loss::kCrossEntropy, 2), net(3, false), splits),
                    Catch::Contains("c.yaml:9") && Catch::Contains("2 arrays") && Catch::Contains("wanted 1") &&
                        Catch::Contains("[N, 4]"));
}

TEST_CASE("a last batch of one under batch norm is refused, as in PyTorch") {
  const auto [samples, batch, drop_last, batch_norm, fine] = GENERATE(table<int, int, bool, bool, bool>({
      {7, 3, false, true, false},
      {7, 3, true, true, true},
      {7, 3, false, false, true},
      {8, 3, false, true, true},
      {6, 3, false, true, true},
      {3, 1, false, true, false},
      {3, 1, true, true, false},
      {1, 4, false, true, false},
  }));
  TaskSpec task = spec(fusion::Loss::kCrossEntropy, batch);
  task.drop_last = drop_last;
  const fusion::Splits splits = labelled(std::vector<std::int64_t>(static_cast<std::size_t>(samples), 0));
  INFO(samples << " samples in batches of " << batch);
  if (fine) {
    CHECK_NOTHROW(check_task(task, net(2, batch_norm), splits));
  } else {
    CHECK_THROWS_WITH(check_task(task, net(2, batch_norm), splits), Catch::Contains("batch of one sample"));
  }
}

TEST_CASE("a warm-up in steps must end before training does") {
  const auto [per_step, warmup, drop_last, message] = GENERATE(table<bool, double, bool, std::string>({
      {true, 8, false, ""},
      {true, 9, false, "found 9 steps, wanted fewer than the 9 of training (3 epochs of 3 steps)"},
      {true, 5, true, ""},
      {true, 6, true, "found 6 steps, wanted fewer than the 6 of training (3 epochs of 2 steps)"},
      {true, 0, false, ""},
      {false, 9, false, ""},  // epochs: the config has said so
  }));
  TaskSpec task = spec(fusion::Loss::kCrossEntropy, 3);
  task.drop_last = drop_last;
  task.recipe.epochs = 3;
  task.hyper.schedule.per_step = per_step;
  task.hyper.schedule.warmup = warmup;
  task.schedule_where = "c.yaml:7";
  const fusion::Splits splits = labelled({0, 1, 0, 1, 0, 1, 0});
  if (message.empty()) {
    CHECK_NOTHROW(check_task(task, net(2, false), splits));
  } else {
    CHECK_THROWS_WITH(check_task(task, net(2, false), splits),
                      Catch::StartsWith("c.yaml:7: train.schedule.warmup: ") && Catch::Contains(message));
  }
}

namespace {

// Token ids [N, 3] looked up in a table of 5 rows, and a mask; what lies between them and the output does not matter.
fusion::Graph exported() {
  fusion::Graph graph;
  graph.values = {{"ids", {fusion::kBatch, 3}, fusion::DType::kInt32},
                  {"mask", {fusion::kBatch, fusion::kBatch}, fusion::DType::kBool},
                  {"table", {5, 2}},  // a weight
                  {"logits", {fusion::kBatch, 2}}};
  graph.nodes = {{"aten::embedding", {2, 0}, {3}, "embed", "net.py:4"},
                 {"aten::dropout", {3, fusion::HyperRef{0}, true}, {3}, "drop", "net.py:5"}};
  graph.nodes.back().names = {"input", "p", "train"};
  graph.hypers = {{"drop.p", 0.5}};
  graph.weights.emplace_back();
  graph.weights.back().shape = {5, 2};
  graph.weights.back().value = 2;
  graph.inputs = {0, 1};
  graph.outputs = {3};
  return graph;
}

fusion::Splits tokens(std::vector<std::int64_t> ids, std::vector<std::int64_t> mask, std::int64_t length = 3) {
  const auto n = static_cast<std::int64_t>(ids.size()) / length;
  fusion::Dataset data;
  data.size = n;
  data.target = {"y", {}, std::vector<std::int64_t>(static_cast<std::size_t>(n), 1)};
  const auto width = static_cast<std::int64_t>(mask.size()) / n;
  data.inputs = {{"text", {length}, std::move(ids)}, {"mask", {width}, std::move(mask)}};
  return {std::move(data), {}, {}};
}

TaskSpec spec_of_file(int batch_size, double dropout = 0.5) {
  TaskSpec task = spec(fusion::Loss::kCrossEntropy, batch_size);
  task.model_file = ModelFile{};
  task.model_file->name = "m.pt2";
  task.model_file->file = "/a/m.pt2";
  task.model_file->import.bind = {{"drop.p", dropout, "c.yaml:5: model.bind"}};
  task.hyper.graph = {dropout};
  return task;
}

}  // namespace

TEST_CASE("data must have the shapes and the range of an exported model's inputs") {
  const TaskSpec task = spec_of_file(2);
  const fusion::Graph graph = exported();
  CHECK_NOTHROW(check_task(task, graph, tokens({0, 1, 2, 3, 4, 0}, {1, 0})));
  CHECK_NOTHROW(check_task(task, graph, tokens({0, 1, 2, 3, 4, 0}, {1, 0, 1, 0, 1, 0})));  // that size is open
  CHECK_THROWS_WITH(check_task(task, graph, tokens({0, 1, 2, 3, 4, 0, 1, 2}, {1, 0}, 4)),
                    "c.yaml:9: data.x: found [N, 4], wanted [N, 3] (input 'ids' of m.pt2)");
  CHECK_THROWS_WITH(check_task(task, graph, tokens({0, 1, 2, 3, 5, 0}, {1, 0})),
                    "c.yaml:9: data.x: found 5 in text of the training set, wanted 0 to 4 (input 'ids' of m.pt2)");
  CHECK_THROWS_WITH(check_task(task, graph, tokens({0, -1, 2, 3, 4, 0}, {1, 0})), Catch::Contains("found -1 in text"));
  CHECK_THROWS_WITH(check_task(task, graph, tokens({0, 1, 2, 3, 4, 0}, {1, 2})),
                    "c.yaml:9: data.x: found 2 in mask of the training set, wanted 0 to 1 (input 'mask' of m.pt2)");
  fusion::Splits splits = tokens({0, 1, 2, 3, 4, 0}, {1, 0});
  splits.validation = tokens({0, 9, 2}, {1}).train;
  CHECK_THROWS_WITH(check_task(task, graph, splits), Catch::Contains("found 9 in text of the validation set"));
  splits.train.inputs.pop_back();
  CHECK_THROWS_WITH(check_task(task, graph, splits),
                    "c.yaml:9: data.x: found 1 arrays, wanted 2: the inputs ids [N, 3], mask [N, N] of m.pt2");
}

TEST_CASE("the batch size must be one that an exported model runs with") {
  const auto message = [](int batch_size, std::int64_t fixed, std::int64_t largest) -> std::string {
    TaskSpec task = spec_of_file(batch_size);
    task.drop_last = fixed > 0;
    fusion::Graph graph = exported();
    graph.fixed_batch = fixed;
    graph.largest_batch = largest;
    try {
      check_task(task, graph, tokens({0, 1, 2, 3, 4, 0, 0, 0, 0}, {1, 0, 1}));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message(2, 0, 0) == "");
  CHECK(message(2, 2, 0) == "");
  CHECK(message(2, 0, 2) == "");
  CHECK(message(3, 2, 0) ==
        "c.yaml:9: data.batch_size: found 3, wanted 2, at which m.pt2 was exported; exported with Dim(\"batch\") "
        "in dynamic_shapes it takes any (Dim.AUTO may fix the batch)");
  CHECK(message(3, 0, 2) == "c.yaml:9: data.batch_size: found 3, wanted at most 2, for which m.pt2 was exported");
  CHECK(message(4, 4, 0) == "c.yaml:9: data.batch_size: found 4, wanted at most the 3 training samples");
}

namespace {

// A graph of nothing but a weight and an output of that shape.
fusion::Graph giving(const fusion::Shape& output) {
  fusion::Graph graph;
  graph.values = {{"x", {fusion::kBatch, 4}}, {"w", {1}}, {"y", output}};
  graph.nodes = {{"aten::mul.Tensor", {0, 1}, {2}, "(model)", "net.py:1"}};
  graph.weights.emplace_back();
  graph.weights.back().shape = {1};
  graph.weights.back().value = 1;
  graph.inputs = {0};
  graph.outputs = {2};
  return graph;
}

}  // namespace

TEST_CASE("an output of any rank is the target's, or refused") {
  struct Case {
    fusion::Loss loss;
    fusion::Shape output;
    std::string words;  ///< "": it is taken.
  };
  constexpr std::int64_t kN = fusion::kBatch;
  const auto [loss, output, words] = GENERATE_COPY(values<Case>({
      {fusion::Loss::kCrossEntropy, {kN, 3}, ""},
      {fusion::Loss::kCrossEntropy, {}, "found output [], wanted the batch as its first dimension"},
      {fusion::Loss::kCrossEntropy, {kN}, "found output [N], wanted [N, classes] for cross_entropy"},
      {fusion::Loss::kCrossEntropy, {3, kN}, "found output [3, N], wanted the batch"},
      {fusion::Loss::kCrossEntropy, {kN, 0}, "found output [N, 0], wanted [N, classes]"},
      {fusion::Loss::kCrossEntropy, {kN, kN}, "found output [N, N], wanted [N, classes]"},
      {fusion::Loss::kCrossEntropy, {kN, 3, 2}, "found target [N], wanted [N, 2]"},
      {fusion::Loss::kMse, {}, "found output []"},
      {fusion::Loss::kMse, {kN, 3}, "found target [N], wanted [N, 3]"},
  }));
  INFO(fusion::to_text(output));
  std::string message;
  try {
    check_task(spec(loss, 2), giving(output), labelled({0, 1, 2}));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    message = error.what();
  }
  CHECK(message.empty() == words.empty());
  CHECK_THAT(message, Catch::Contains(words));
}

TEST_CASE("empty sets, inputs without dimensions and calls without arguments are no reason to read beyond them") {
  const TaskSpec task = spec(fusion::Loss::kCrossEntropy, 2);
  CHECK_THROWS_WITH(check_task(task, net(3, false), labelled({})), Catch::Contains("found no training sample"));
  fusion::Splits splits = labelled({0, 1, 2});
  splits.validation = labelled({}).train;
  CHECK_NOTHROW(check_task(task, net(3, false), splits));
  CHECK_THROWS_WITH(check_task(spec(fusion::Loss::kCrossEntropy, 0), net(3, false), labelled({0, 1})),
                    Catch::Contains("data.batch_size: found 0"));
  fusion::Graph bare = giving({fusion::kBatch, 3});
  bare.nodes.insert(bare.nodes.begin(), {{"aten::embedding", {}, {}, "e", ""},
                                         {"aten::embedding", {std::int64_t{1}, fusion::ValueId{0}}, {}, "e", ""},
                                         {"aten::batch_norm", {}, {}, "b", ""},
                                         {"aten::batch_norm", {fusion::ValueId{1}}, {}, "b", ""}});
  CHECK_NOTHROW(check_task(task, bare, labelled({0, 1, 2})));
  bare.values[0].shape = {};
  CHECK_THROWS_WITH(check_task(task, bare, labelled({0, 1, 2})), Catch::Contains("found [N, 4], wanted []"));
}

TEST_CASE("a model must have something to train") {
  const fusion::Splits splits = tokens({0, 1, 2}, {1});
  fusion::Graph graph = exported();
  graph.weights.front().trained = false;
  TaskSpec task = spec_of_file(1);
  task.model_file->import.where = "c.yaml:3: model";
  CHECK_THROWS_WITH(check_task(task, graph, splits),
                    "c.yaml:3: model: found no parameter of m.pt2 to train, wanted one: it was exported with "
                    "requires_grad=False");
  task.model_file->import.freeze = {"*"};
  CHECK_THROWS_WITH(check_task(task, graph, splits), Catch::EndsWith("wanted one: freeze takes them all"));
}

TEST_CASE("a bound rate must be one") {
  const fusion::Splits splits = tokens({0, 1, 2}, {1});
  for (const double rate : {0.0, 0.5, 1.0}) CHECK_NOTHROW(check_task(spec_of_file(1, rate), exported(), splits));
  for (const double rate : {-0.1, 1.5}) {
    CHECK_THROWS_WITH(
        check_task(spec_of_file(1, rate), exported(), splits),
        Catch::StartsWith("c.yaml:5: model.bind: drop.p: found ") && Catch::EndsWith("wanted a rate from 0 to 1"));
  }
}

TEST_CASE("a bound number that only has the name of a rate may be any") {
  fusion::Graph graph = exported();
  graph.nodes.back().op = "aten::pdist";
  graph.nodes.back().args = {fusion::ValueId{3}, fusion::HyperRef{0}};
  graph.nodes.back().names = {"self", "p"};
  CHECK_NOTHROW(check_task(spec_of_file(1, 3), graph, tokens({0, 1, 2}, {1})));
  graph.nodes.back().op = "aten::bernoulli.p";
  CHECK_THROWS_WITH(check_task(spec_of_file(1, 3), graph, tokens({0, 1, 2}, {1})),
                    Catch::EndsWith("found 3, wanted a rate from 0 to 1"));
}

TEST_CASE("whatever looks ids up is held to the rows of its table, by order and by name") {
  fusion::Graph graph = exported();
  fusion::Node& lookup = graph.nodes.front();
  const auto check = [&](const char* op, std::vector<fusion::Arg> args, std::vector<std::string> names) {
    INFO(op);
    lookup.op = op;
    lookup.args = std::move(args);
    lookup.names = std::move(names);
    CHECK_NOTHROW(check_task(spec_of_file(1), graph, tokens({0, 1, 4}, {1})));
    CHECK_THROWS_WITH(check_task(spec_of_file(1), graph, tokens({0, 1, 5}, {1})), Catch::Contains("found 5"));
  };
  const fusion::ValueId ids = 0, table = 2;
  check("aten::embedding", {table, ids}, {});
  check("aten::embedding", {table, ids}, {"weight", "indices"});
  check("aten::embedding_bag", {table, ids, ids}, {"weight", "indices", "offsets"});
  check("aten::embedding_renorm_", {table, ids, 1.0, 2.0}, {});
}

TEST_CASE("what is filled up in evaluation must not depend on what it is filled up with") {
  const TaskSpec task = spec(fusion::Loss::kCrossEntropy, 2);
  fusion::Graph graph = net(3, false);
  const fusion::Dataset whole = labelled({0, 1, 2, 0}).train, odd = labelled({0, 1, 2}).train;
  CHECK_NOTHROW(check_whole_batches(task, graph, odd, "test", true));
  graph.fixed_batch = 2;
  CHECK_NOTHROW(check_whole_batches(task, graph, whole, "test", true));
  CHECK_NOTHROW(check_whole_batches(task, graph, odd, "test", false));
  CHECK_THROWS_WITH(check_whole_batches(task, graph, odd, "test", true),
                    Catch::StartsWith("c.yaml:9: data: found 3 samples in the test set, wanted a multiple of 2") &&
                        Catch::EndsWith("a sample's output depends on the others"));
  graph.fixed_batch = 0;
  CHECK_NOTHROW(check_whole_batches(task, graph, odd, "test", true));
  TaskSpec own = task;
  own.recipe.loss = fusion::Loss::kModel;
  graph.fixed_batch = 2;
  CHECK_NOTHROW(check_whole_batches(own, graph, odd, "test", false));  // a loss for each sample
  CHECK_THROWS_WITH(check_whole_batches(own, graph, odd, "test", true),
                    Catch::EndsWith("a sample's output depends on the others"));
  graph.fixed_batch = 0;
  graph.limits.smallest = 2;
  CHECK_THROWS_WITH(check_whole_batches(task, graph, odd, "test", true),
                    Catch::Contains("found 3 samples in the test set, wanted another number or data.batch_size: the "
                                    "last batch would be of 1, the model takes at least 2 samples, and a"));
}

}  // namespace hfta::engine
