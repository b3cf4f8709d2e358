// Conditions and constraints of a config, and what a task has where a parameter does not apply.
#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

using trials::Params;
using trials::ParamValue;

const std::string kHidden = "  hidden: {values: [32, 64]}";
const std::string kOptimizer = R"({name: adamw, lr: "${lr}"})";

// The sample with an optimizer to choose, and a momentum for sgd alone.
std::vector<Change> momentum(const std::string& keys, const std::string& use = R"(momentum: "${momentum}")") {
  return {{kHidden, kHidden + "\n  optimizer: {values: [sgd, adamw]}\n  momentum: {min: 0.0, max: 0.9, " + keys + "}"},
          {kOptimizer, R"({name: "${optimizer}", lr: "${lr}", )" + use + "}"}};
}

Params params(const char* optimizer, std::optional<double> value) {
  Params all = {{"lr", 0.1}, {"drop", 0.5}, {"hidden", std::int64_t{32}}, {"optimizer", std::string(optimizer)}};
  if (value) all.emplace_back("momentum", *value);
  return all;
}

TEST_CASE("a parameter applies by the values of others") {
  const StudyConfig config = parsed(changed(momentum("when: {optimizer: sgd}")));
  REQUIRE(config.space.size() == 5);
  CHECK(config.space[4].when == std::vector<trials::Condition>{{"optimizer", {std::string("sgd")}}});
  CHECK(config.task(params("sgd", 0.5)).hyper.optimizer.momentum == 0.5);
  CHECK(config.task(params("adamw", std::nullopt)).recipe.optimizer == fusion::OptimizerKind::kAdamW);
  CHECK(config.warnings.empty());
  const StudyConfig listed = parsed(changed(momentum("when: {optimizer: [sgd], hidden: [32, 64.0]}")));
  CHECK(listed.space[4].when.size() == 2);
  CHECK(listed.space[4].when[1].values == std::vector<ParamValue>{std::int64_t{32}, std::int64_t{64}});
  CHECK(listed.normalized != config.normalized);
}

TEST_CASE("what stands for a parameter that does not apply") {
  // Smoothing is read of every trial; where it is left out it is 0.
  const Change smoothed = {"loss: cross_entropy", "loss: {name: cross_entropy, label_smoothing: \"${smooth}\"}"};
  const auto with = [&](const std::string& otherwise) {
    return changed(
        {{kHidden, kHidden + "\n  smooth: {min: 0.1, max: 0.2, when: {hidden: 64}" + otherwise + "}"}, smoothed});
  };
  const StudyConfig config = parsed(with(", otherwise: 0.05"));
  const Params small = {{"lr", 0.1}, {"drop", 0.5}, {"hidden", std::int64_t{32}}};
  CHECK(config.task(small).hyper.loss == std::vector<double>{0.05});
  CHECK(config.otherwise.at("smooth") == ParamValue(0.05));
  CHECK(parsed(with(", otherwise: 0.05")).normalized != parsed(with(", otherwise: 0.06")).normalized);
  CHECK(message_of(with("")).find("label_smoothing: found null (from ${smooth})") != std::string::npos);
}

TEST_CASE("what may not be left out is wanted of every trial") {
  const auto with = [](const std::string& parameter, const Change& use) {
    return message_of(changed({{kHidden, kHidden + "\n  " + parameter}, use}));
  };
  CHECK_THAT(with("batch: {values: [8, 16], when: {hidden: 64}}", {"batch_size: 64", "batch_size: \"${batch}\""}),
             Catch::Contains("data.batch_size: found") && Catch::Contains("(from ${batch})"));
  CHECK(with("end: {values: [ine], when: {hidden: 64}}", {"{name: cosine}", "{name: \"cos${end}\"}"})
            .find("train.schedule.name: found ${end} in trials to which end does not apply, wanted "
                  "parameters.end.otherwise") != std::string::npos);
  CHECK(with("end: {values: [ine], when: {hidden: 64}, otherwise: ine}", {"{name: cosine}", "{name: \"cos${end}\"}"}) ==
        "");
}

TEST_CASE("constraints are read, decide draws, and spare the check what they forbid") {
  const StudyConfig config =
      parsed(changed({{"seed: 1", "seed: 1\nconstraints: [\"lr * 10 <= hidden\", drop < 0.6]"}}));
  REQUIRE(config.constraints.size() == 2);
  CHECK(config.constraints[0].text() == "lr * 10 <= hidden");
  CHECK(config.normalized.find("lr * 10 <= hidden") != std::string::npos);
  CHECK(parsed(changed({{"seed: 1", "seed: 1\nconstraints: []"}})).normalized == parsed(kSample).normalized);
  // A dropout above 1 cannot be trained; it is never drawn.
  const Change wide = {"max: 0.7", "max: 1.5"};
  CHECK(message_of(changed({wide})) != "");
  CHECK(message_of(changed({wide, {"seed: 1", "seed: 1\nconstraints: [drop < 1]"}})) == "");
}

TEST_CASE("mistakes in conditions and constraints are refused with the place") {
  const auto when = [](const std::string& keys) { return momentum(keys); };
  const auto constraint = [](const std::string& text) {
    return std::vector<Change>{{"seed: 1", "seed: 1\nconstraints: [" + text + "]"}};
  };
  struct Case {
    std::vector<Change> changes;
    const char* message;
  };
  const std::vector<Case> cases = {
      {when("when: {optimiser: sgd}"),
       "s.yaml:12: parameters.momentum.when: found 'optimiser', wanted the name of a parameter; did you mean "
       "'optimizer'?"},
      {when("when: {optimizer: rmsprop}"),
       "s.yaml:12: parameters.momentum.when: found 'rmsprop', wanted a value that optimizer can have"},
      {when("when: {optimizer: []}"),
       "s.yaml:12: parameters.momentum.when: found an empty list, wanted a value, or a list of them"},
      {when("when: {optimizer: {a: b}}"),
       "s.yaml:12: parameters.momentum.when: found a map, wanted a value that optimizer can have"},
      {when("when: optimizer"),
       "s.yaml:12: parameters.momentum.when: found 'optimizer', wanted a map of parameters to a "
       "value or a list of values: {optimizer: sgd}"},
      {when("otherwise: 0"),
       "s.yaml:12: parameters.momentum.otherwise: found it without `when`, wanted both or neither"},
      {when("when: {momentum: 0.5}"),
       "s.yaml:12: parameters.momentum.when: found conditions in a circle, of momentum; "
       "wanted none that depends on itself"},
      {constraint("lr <"), "s.yaml:4: constraints: 'lr <': found the end, wanted a number, a name or ("},
      {constraint("lr"), "s.yaml:4: constraints: 'lr': found no comparison, wanted one of <=, >=, ==, !=, <, >"},
      {constraint("1 < 2"), "s.yaml:4: constraints: '1 < 2': found no parameter in it, wanted one or more"},
      {constraint("rl < 2"),
       "s.yaml:4: constraints: 'rl < 2': found 'rl', wanted the name of a parameter; valid: lr, drop, hidden"},
      {{{"seed: 1", "seed: 1\nconstraints: lr < 2"}},
       "s.yaml:4: constraints: found 'lr < 2', wanted a list of comparisons: [\"hidden2 <= hidden1\"]"},
      {{{"method: random", "method: pbt\nconstraints: [lr < 2]"}},
       "s.yaml:4: method: found pbt, which changes parameters of trials, beside `when` or `constraints`; wanted "
       "another "
       "method"},
  };
  for (const Case& c : cases) CHECK(message_of(changed(c.changes)) == c.message);
  const std::string words =
      changed({{kHidden, kHidden + "\n  act: {values: [relu, tanh]}"}, {"- relu", "- \"${act}\""}});
  CHECK(message_of(changed({{"seed: 1", "seed: 1\nconstraints: [act < 2]"}}, words)) ==
        "s.yaml:4: constraints: 'act < 2': found act, which has values that are no numbers");
}

TEST_CASE("a budget ends a study that has no other end") {
  const StudyConfig hours = parsed(changed({{"run_cap: 8", "budget: {hours: 2, minutes: 30}"}}));
  CHECK(hours.budget.seconds == 9000);
  CHECK(hours.run_cap == kEndless);
  CHECK_FALSE(hours.budget.epochs);
  const StudyConfig both = parsed(changed({{"run_cap: 8", "budget: {epochs: 100, trials: 9}"}}));
  CHECK(both.budget.epochs == 100);
  CHECK(both.run_cap == 9);
  CHECK(parsed(changed({{"goal: maximize", "goal: maximize, target: 0.9"}})).target == 0.9);
  // None of this decides what trials come to.
  CHECK(both.normalized == parsed(kSample).normalized);
  CHECK(parsed(changed({{"goal: maximize", "goal: maximize, target: 0.9"}})).normalized == parsed(kSample).normalized);
}

TEST_CASE("Hyperband takes the sampler of another method, with its settings") {
  const StudyConfig config = parsed(
      changed({{"method: random", "method: hyperband\nhyperband: {sampler: tpe, eta: 2}\ntpe: {startup_trials: 4}"}}));
  CHECK(config.method_options.sampler == "tpe");
  CHECK(config.method_options.tpe.startup_trials == 4);
  CHECK(config.method_options.hyperband.eta == 2);
  CHECK(config.warnings.empty());
  const StudyConfig plain = parsed(changed({{"method: random", "method: hyperband"}}));
  CHECK(plain.normalized.find("sampler") == std::string::npos);
  CHECK(plain.normalized ==
        parsed(changed({{"method: random", "method: hyperband\nhyperband: {sampler: random}"}})).normalized);
  CHECK(config.normalized.find("startup_trials") != std::string::npos);
  CHECK(message_of(changed({{"method: random", "method: hyperband\nhyperband: {sampler: grid}"}}))
            .starts_with("s.yaml:5: hyperband.sampler: found 'grid', wanted one of random, sobol, tpe, gp"));
}

}  // namespace
}  // namespace hfta::engine
