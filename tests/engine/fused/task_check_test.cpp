#include "engine/fused/task_check.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
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
                    Catch::Contains("c.yaml:9") && Catch::Contains("2 arrays"));
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

}  // namespace hfta::engine
