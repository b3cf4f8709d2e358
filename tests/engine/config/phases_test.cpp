// train.phases
#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

const std::string kPhases = R"(phases:
    - {loss: d, weight: n, params: critic, optimizer: {name: rmsprop, lr: "${lr}"}, clip_weights: "${drop}"}
    - {loss: g, params: [maker, "*norm*"], optimizer: {name: adam, groups: [{params: maker.1, lr: 0.5}]}, every: 5, clip_norm: 2})";

std::string text_with(const std::string& phases, const std::string& metric = "val_loss") {
  return changed(
      {{"{min: 0.0, max: 0.7}", "{min: 0.1, max: 0.7}"},
       {"{name: val_accuracy, goal: maximize}", "{name: " + metric + ", goal: minimize}"},
       {"name: digits", "train: a.npz, x: [real, noise]"},
       {"loss: cross_entropy", phases},
       {"  optimizer: {name: adamw, lr: \"${lr}\"}\n", "  metrics: {fooled: \"mean(g)\", hits: hits / samples}\n"}},
      kExported);
}

std::string refused(const std::string& from, const std::string& to) {
  std::string phases = kPhases;
  phases.replace(phases.find(from), from.size(), to);
  return message_of(text_with(phases));
}

}  // namespace

TEST_CASE("phases, typed") {
  const TaskSpec task = parsed(text_with(kPhases)).task({{"lr", 0.1}, {"drop", 0.5}, {"hidden", std::int64_t{32}}});
  REQUIRE(task.recipe.phases.size() == 2);
  const fusion::Phase &critic = task.recipe.phases[0], &maker = task.recipe.phases[1];
  CHECK(task.recipe.loss == fusion::Loss::kModel);
  CHECK(task.recipe.loss_options.weighted);
  CHECK(critic.params == std::vector<std::string>{"critic"});
  CHECK(critic.optimizer == fusion::OptimizerKind::kRmsprop);
  CHECK(critic.every == 1);
  CHECK(maker.params == std::vector<std::string>{"maker", "*norm*"});
  CHECK(maker.optimizer == fusion::OptimizerKind::kAdam);
  CHECK(maker.every == 5);
  CHECK_FALSE(maker.weighted);
  REQUIRE(maker.groups.size() == 1);
  REQUIRE(task.hyper.phases.size() == 2);
  CHECK(task.hyper.phases[0].optimizer.lr == 0.1);
  CHECK(task.hyper.phases[0].clip_weights == 0.5);
  CHECK_FALSE(task.hyper.phases[0].clip_norm);
  CHECK(task.hyper.phases[1].optimizer.lr == 0.001);
  CHECK(task.hyper.phases[1].groups.at(0).lr == 0.5);
  CHECK(task.hyper.phases[1].clip_norm == 2);
  CHECK(task.recipe.clips);
  CHECK(task.model_file->import.output == std::variant<std::monostate, std::int64_t, std::string>("d"));
  CHECK(task.model_file->import.further == std::vector<std::string>{"n", "g", "hits", "g"});
  CHECK(task.data.y.empty());
}

TEST_CASE("the optimizer of a phase may be a word") {
  std::string phases = kPhases;
  const std::string map = "{name: adam, groups: [{params: maker.1, lr: 0.5}]}";
  phases.replace(phases.find(map), map.size(), "adagrad");
  const TaskSpec task = parsed(text_with(phases)).task({{"lr", 0.1}, {"drop", 0.5}, {"hidden", std::int64_t{32}}});
  CHECK(task.recipe.phases.at(1).optimizer == fusion::OptimizerKind::kAdagrad);
  CHECK(task.hyper.phases.at(1).optimizer.lr == 0.01);
}

TEST_CASE("a phase's loss can be the study's metric") {
  CHECK(message_of(text_with(kPhases, "train_g")).empty());
  CHECK(message_of(text_with(kPhases, "val_fooled")).empty());
  CHECK_FALSE(message_of(text_with(kPhases, "train_h")).empty());
}

TEST_CASE("numbers of phases are per slot") {
  const StudyConfig config = parsed(text_with(kPhases));
  CHECK_FALSE(config.shape_changing.contains("lr"));
  CHECK_FALSE(config.shape_changing.contains("drop"));
}

TEST_CASE("phases that cannot be are refused where they stand") {
  const auto begins = [](const std::string& found, const std::string& wanted) {
    CHECK(found.substr(0, wanted.size()) == wanted);
  };
  begins(refused("loss: g", "loss: d"),
         "s.yaml:20: train.phases.1.loss: found 'd', which is another phase's loss, too");
  begins(refused("loss: d, ", ""), "s.yaml:19: train.phases.0.loss: found nothing, wanted a word");
  begins(refused("params: critic, ", ""), "s.yaml:19: train.phases.0.params: found nothing, wanted a name");
  begins(refused("every: 5", "every: 0"), "s.yaml:20: train.phases.1.every: found 0, wanted an integer");
  begins(refused("\"${drop}\"", "-1"), "s.yaml:19: train.phases.0.clip_weights: found -1, wanted a number above 0");
  begins(refused("rmsprop", "rmsprob"), "s.yaml:19: train.phases.0.optimizer.name: found 'rmsprob', wanted one of");
  begins(refused("name: adam,", "name: adam, momentum: 1,"),
         "s.yaml:20: train.phases.1.optimizer.momentum: found a key of");
  begins(refused("lr: 0.5", "lr: -1"), "s.yaml:20: train.phases.1.optimizer.groups.0.lr: found -1, wanted");
  begins(refused("phases:", "accumulate: 2\n  phases:"), "s.yaml:18: train.accumulate: found it beside phases");
  begins(refused("phases:", "loss: mse\n  phases:"), "s.yaml:18: train.loss: found it beside phases");
  CHECK(message_of(text_with("phases: []")).find("train.phases: found") != std::string::npos);
  CHECK(message_of(changed({{"loss: cross_entropy", "phases: [{loss: a, params: b, optimizer: sgd}]"},
                            {"  optimizer: {name: adamw, lr: \"${lr}\"}\n", "  dtype: float32\n"}}))
            .find("found phases beside model.layers") != std::string::npos);
}

}  // namespace hfta::engine
