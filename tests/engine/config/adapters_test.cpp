// model.adapters

#include "fusion/adapters.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

const std::string kAdapted = R"(study: tuned
method: random
run_cap: 4
metric: {name: train_loss}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0e-2}
  r: {values: [2, 8, 4]}
  a: {min: 1.0, max: 32.0}
  p: {values: [0, 0.1]}
model:
  file: base.pt2
  adapters:
    lora: {targets: [q_proj, "*.v_proj"], rank: "${r}", alpha: "${a}", dropout: "${p}", scale: rslora}
    train: classifier
data: {train: x.npz, batch_size: 8}
train:
  epochs: 2
  loss: cross_entropy
  optimizer: {name: adamw, lr: "${lr}"}
)";

const trials::Params kParams = {{"lr", 0.001}, {"r", std::int64_t{4}}, {"a", 16.0}, {"p", 0.1}};

fusion::Lora lora_of(const std::string& text, const trials::Params& params = kParams,
                     const std::vector<Override>& overrides = {}) {
  const TaskSpec task = parsed(text, overrides).task(params);
  REQUIRE(task.model_file);
  REQUIRE(task.model_file->import.lora);
  return *task.model_file->import.lora;
}

TEST_CASE("adapters, typed", "[adapters]") {
  const StudyConfig config = parsed(kAdapted);
  CHECK(config.warnings.empty());
  CHECK(config.shape_changing.empty());  // trials of all ranks share an array
  CHECK(config.padded == std::set<std::string>{"r"});
  const fusion::Lora lora = lora_of(kAdapted);
  CHECK(lora.targets == std::vector<std::string>{"q_proj", "*.v_proj"});
  CHECK(lora.train == std::vector<std::string>{"classifier"});
  CHECK(lora.rank == 4);
  CHECK(lora.largest_rank == 8);
  CHECK(lora.alpha == 16);
  CHECK(lora.dropout == 0.1);
  CHECK(lora.scale == fusion::LoraScale::kRankStabilized);
  CHECK(lora.where == "s.yaml:13: model.adapters");
}

TEST_CASE("what is left out of adapters", "[adapters]") {
  const std::string line =
      R"({targets: [q_proj, "*.v_proj"], rank: "${r}", alpha: "${a}", dropout: "${p}", scale: rslora})";
  const auto with = [&](const std::string& lora) { return lora_of(changed({{line, lora}}, kAdapted)); };
  const fusion::Lora none = with("{}");
  CHECK(none.targets == std::vector<std::string>{fusion::kAllLinear});
  CHECK(none.rank == 8);
  CHECK(none.largest_rank == 8);
  CHECK(none.alpha == 8);
  CHECK_FALSE(none.dropout);
  CHECK(none.scale == fusion::LoraScale::kStandard);
  CHECK(with("{rank: \"${r}\"}").alpha == 4);
  CHECK_FALSE(with("{dropout: 0}").dropout);
  CHECK(with("{dropout: 0.25}").dropout == 0.25);
  // A searched rate of 0 shares its array with others, and so their graph.
  trials::Params still = kParams;
  still[3].second = std::int64_t{0};
  CHECK(lora_of(kAdapted, still).dropout == 0.0);
}

struct Mistake {
  Change change;
  std::string message;
};

TEST_CASE("mistakes in adapters", "[adapters]") {
  const Mistake one = GENERATE(
      Mistake{{"rank: \"${r}\"", "rank: 0"},
              "s.yaml:13: model.adapters.lora.rank: found 0, wanted an integer from 1 to 4096"},
      Mistake{{"rank: \"${r}\"", "rank: \"${lr}\""}, "wanted an integer from 1 to 4096"},
      Mistake{{"dropout: \"${p}\"", "dropout: 1"},
              "model.adapters.lora.dropout: found 1, wanted a number of at least 0 and below 1"},
      Mistake{{"scale: rslora", "scale: rs"}, "model.adapters.lora.scale: found 'rs', wanted one of standard, rslora"},
      Mistake{{"lora: {", "lora: {rnak: 3, "}, "model.adapters.lora.rnak: found an unknown key"},
      Mistake{{"    lora:", "    loar:"}, "model.adapters.loar: found an unknown key"},
      Mistake{{"file: base.pt2", "layers: [flatten]"}, "model.adapters: found a key of file, wanted a key of layers"},
      Mistake{
          {"{name: adamw, lr: \"${lr}\"}", "{name: adamw, lr: \"${lr}\", eps: 0}"},
          "train.optimizer: found adamw with eps 0, which moves zeros, and adapters of smaller ranks are padded with "
          "zeros to rank 8; wanted eps above 0, or one model.adapters.lora.rank for all trials"});
  CHECK_THAT(message_of(changed({one.change}, kAdapted)), Catch::Contains(one.message));
}

TEST_CASE("one rank for all trials needs no padding, and so no eps", "[adapters]") {
  CHECK(message_of(changed(
            {{"{name: adamw, lr: \"${lr}\"}", "{name: adamw, lr: \"${lr}\", eps: 0}"}, {"rank: \"${r}\"", "rank: 4"}},
            kAdapted)) == "");
}

TEST_CASE("the ready space", "[adapters]") {
  const std::string text = R"(study: tuned
method: random
run_cap: 4
metric: {name: train_loss}
model: {file: base.pt2, adapters: {lora: auto, train: [classifier]}}
data: {train: x.npz, batch_size: 8}
train: {epochs: 2, loss: cross_entropy, optimizer: adamw}
)";
  const StudyConfig config = parsed(text);
  CHECK(config.warnings.empty());
  REQUIRE(config.early_stopping.size() == 1);
  CHECK(config.early_stopping.front().rule == "median");
  std::vector<std::string> names;
  for (const trials::Parameter& parameter : config.space) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"lora_rank", "lora_alpha", "lora_dropout", "lora_lr"});
  CHECK(config.shape_changing.empty());
  const trials::Params params = {
      {"lora_rank", std::int64_t{4}}, {"lora_alpha", std::int64_t{8}}, {"lora_dropout", 0.05}, {"lora_lr", 0.001}};
  const fusion::Lora lora = *config.task(params).model_file->import.lora;
  CHECK(lora.rank == 4);
  CHECK(lora.largest_rank == 16);
  CHECK(lora.alpha == 8);
  CHECK(lora.dropout == 0.05);
  CHECK(config.task(params).hyper.optimizer.lr == 0.001);
}

TEST_CASE("the ready space leaves alone what the config says", "[adapters]") {
  const std::string text = R"(study: tuned
method: random
run_cap: 4
metric: {name: train_loss}
early_stopping: none
parameters: {lora_rank: {values: [1, 2]}}
model: {file: base.pt2, adapters: {lora: auto}}
data: {train: x.npz, batch_size: 8}
train: {epochs: 2, loss: cross_entropy, optimizer: {name: adamw, lr: 0.01}}
)";
  const StudyConfig config = parsed(text);
  CHECK(config.early_stopping.empty());
  REQUIRE(config.space.size() == 3);
  CHECK(config.space[0].distribution.values.size() == 2);
  CHECK(parsed(changed({{"method: random", "method: hyperband"}, {"early_stopping: none\n", ""}}, text))
            .early_stopping.empty());
}

}  // namespace
}  // namespace hfta::engine
