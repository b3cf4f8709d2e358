// train.optimizer.groups
#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

using Lines = std::vector<std::string>;

const std::string kOptimizer = R"({name: adamw, lr: "${lr}"})";
const std::string kGroups = R"({name: adamw, lr: "${lr}", weight_decay: 0.1, groups: [
    {params: ["*bias", "*norm*"], weight_decay: 0},
    {params: "layers.1", lr: "${drop}", betas: [0.5, 0.6]},
    {params: layers.4, lr_scale: 10, eps: 1.0e-4}]})";

TaskSpec task(const std::string& text) {
  return parsed(text).task({{"lr", 0.01}, {"drop", 0.25}, {"hidden", std::int64_t{32}}});
}

Lines differences(const std::string& from, const std::string& to) {
  return config_differences(parsed(changed({{kOptimizer, from}})).normalized,
                            parsed(changed({{kOptimizer, to}})).normalized);
}

TEST_CASE("groups of parameters, typed") {
  const TaskSpec spec = task(changed({{kOptimizer, kGroups}}));
  REQUIRE(spec.recipe.groups.size() == 3);
  CHECK(spec.recipe.groups[0].params == Lines{"*bias", "*norm*"});
  CHECK(spec.recipe.groups[0].where == "s.yaml:23: train.optimizer.groups.0.params");
  CHECK(spec.recipe.groups[1].params == Lines{"layers.1"});
  const std::vector<fusion::OptimizerHyper>& groups = spec.hyper.groups;
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].lr == 0.01);
  CHECK(groups[0].weight_decay == 0);
  CHECK(groups[0].beta1 == 0.9);
  CHECK(groups[1].lr == 0.25);
  CHECK(groups[1].weight_decay == 0.1);
  CHECK(groups[1].beta1 == 0.5);
  CHECK(groups[1].beta2 == 0.6);
  CHECK(groups[2].lr == Approx(0.1).epsilon(1e-15));
  CHECK(groups[2].eps == 1e-4);
  CHECK(spec.hyper.optimizer.lr == 0.01);
  CHECK(spec.hyper.optimizer.weight_decay == 0.1);
  CHECK(task(kSample).recipe.groups.empty());
  CHECK(task(changed({{kOptimizer, R"({name: adamw, lr: "${lr}", groups: ~})"}})).hyper.groups.empty());
}

TEST_CASE("groups have flags, and numbers of an optimizer that another trial has") {
  const StudyConfig config = parsed(changed({{"{values: [32, 64]}", "{values: [sgd, rprop]}"},
                                             {kOptimizer, R"({name: "${hidden}", lr: "${lr}", momentum: 0.9, groups: [
    {params: "*bias", nesterov: true}, {params: layers.1, eta_plus: 1.5}]})"},
                                             {R"("${hidden}"])", "32]"},
                                             {R"(["${hidden}", 10])", "[32, 10]"}}));
  const auto groups = [&](const char* name) {
    return config.task({{"lr", 0.01}, {"drop", 0.25}, {"hidden", name}}).hyper.groups;
  };
  CHECK(groups("sgd")[0].nesterov);
  CHECK_FALSE(groups("sgd")[1].nesterov);
  CHECK_FALSE(groups("rprop")[0].nesterov);
  CHECK(groups("rprop")[1].eta_plus == 1.5);
}

TEST_CASE("numbers of groups are per slot, patterns split arrays") {
  const auto splits = [](const std::string& groups) {
    const std::string optimizer = R"({name: adamw, lr: "${lr}", groups: [)" + groups + "]}";
    return parsed(changed({{kOptimizer, optimizer}})).shape_changing.contains("drop");
  };
  CHECK_FALSE(splits(R"({params: "*bias", lr: "${drop}"})"));
  CHECK_FALSE(splits(R"({params: "*bias", lr_scale: "${drop}"})"));
  CHECK_FALSE(splits(R"({params: "*bias"}, {params: layers.1, betas: ["${drop}", 0.9]})"));
  CHECK(splits(R"({params: "${drop}"})"));
  CHECK(splits(R"({params: ["*bias", "layers.${drop}"]})"));
}

TEST_CASE("groups are recorded where they are given") {
  CHECK(parsed(kSample).normalized.find("groups") == std::string::npos);
  CHECK(differences(kGroups, kGroups) == Lines{});
  CHECK(differences(R"({name: adamw, lr: "${lr}", groups: [{params: a, lr: 2}]})",
                    R"({name: adamw, lr: "${lr}", groups: [{lr: 2.0, params: [a]}]})") == Lines{});
  CHECK(differences(R"({name: adamw, lr: "${lr}", groups: [{params: a, lr: "${lr}"}]})",
                    R"({name: adamw, lr: "${lr}", groups: [{params: b, lr: 3}]})") ==
        Lines{"train.optimizer.groups.0.lr: found 3.0, the study has ${lr}",
              "train.optimizer.groups.0.params.0: found b, the study has a"});
}

TEST_CASE("mistakes in groups") {
  const std::string list = "a list of groups: {params: names, lr: 0.001}";
  const auto [groups, message] = GENERATE_COPY(table<std::string, std::string>({
      {"[]", ": found an empty list, wanted " + list},
      {"5", ": found 5, wanted " + list},
      {R"("${drop}")", ": found '${drop}', wanted " + list + ": all trials of a study share it"},
      {"[bias]", ".0: found 'bias', wanted a map"},
      {R"(["${drop}"])", ".0: found '${drop}', wanted " + list + ": all trials of a study share it"},
      {"[{lr: 1}]", ".0.params: found nothing, wanted a name or a list of names"},
      {"[{params: []}]", ".0.params: found an empty list, wanted a name or a list of names"},
      {"[{params: {a: b}}]", ".0.params: found a map, wanted a name or a list of names"},
      {"[{params: a}, {params: [b, [c]]}]", ".1.params.1: found a list, wanted a name or a list of names"},
      {"[{params: a, lr: -1}]", ".0.lr: found -1, wanted a number of at least 0"},
      {"[{params: a, lr: 1, lr_scale: 2}]", ".0.lr_scale: found it beside lr, wanted one or the other"},
      {"[{params: a, lr_scale: fast}]", ".0.lr_scale: found 'fast', wanted a number of at least 0"},
      {"[{params: a, beta1: 0.5, betas: [0.5, 0.5]}]", ".0.beta1: found it beside betas, wanted one or the other"},
      {"[{params: a, beta1: 1}]", ".0.beta1: found 1, wanted a number of at least 0 and below 1"},
      {"[{params: a, momentum: 0.9}]",
       ".0.momentum: found a key of sgd, rmsprop, wanted a key of adamw: params, lr_scale, lr, weight_decay, betas, "
       "beta1, beta2, eps"},
      {"[{params: a, weight_decoy: 0}]",
       ".0.weight_decoy: found an unknown key, wanted one of this section's; did you mean 'weight_decay'?"},
      {R"([{params: a, lr: "${lx}"}])", ".0.lr: found ${lx}, wanted the name of a parameter; did you mean 'lr'?"},
  }));
  const std::string text = changed({{kOptimizer, R"({name: adamw, lr: "${lr}", groups: )" + groups + "}"}});
  CHECK(message_of(text) == "s.yaml:22: train.optimizer.groups" + message);
}

TEST_CASE("--set reaches into groups") {
  const std::string text = changed({{kOptimizer, R"({name: adamw, lr: "${lr}", groups: [{params: a, lr: 2}]})"}});
  const auto lr = [&](const std::string& key, const std::string& value) {
    const StudyConfig config = parsed(text, {{key, value}});
    return config.task({{"lr", 0.01}, {"drop", 0.25}, {"hidden", std::int64_t{32}}}).hyper.groups.at(0).lr;
  };
  CHECK(lr("train.optimizer.groups.0.lr", "3") == 3);
  CHECK(lr("train.optimizer.groups", "[{params: a, lr: 4}]") == 4);
}

}  // namespace
}  // namespace hfta::engine
