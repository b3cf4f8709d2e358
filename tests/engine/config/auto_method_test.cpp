// `method: auto`, and configs that name no method.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sample.hpp"

namespace hfta::engine {
namespace {

const Change kUnnamed = {"method: random\n", ""};
const Change kAuto = {"method: random", "method: auto"};

TEST_CASE("a config that names no method means auto, and one that names a method is left alone") {
  CHECK_FALSE(parsed(kSample).choice);
  const StudyConfig unnamed = parsed(changed({kUnnamed}));
  REQUIRE(unnamed.choice);
  CHECK(unnamed.method == "sobol");  // 8 trials are too few to learn from
  CHECK(unnamed.choice->text() == "auto chose method: sobol, because 8 configurations are too few to learn from");
  CHECK(parsed(changed({kAuto})).normalized == unnamed.normalized);
  CHECK(parsed(changed({{"method: random", "method: null"}})).normalized == unnamed.normalized);
  CHECK(parsed(changed({{"method: random", "method: sobol"}})).normalized == unnamed.normalized);
}

TEST_CASE("what auto chose is a config that could have been written") {
  const StudyConfig chosen = parsed(changed({kUnnamed, {"run_cap: 8", "budget: {epochs: 4000}"}}));
  REQUIRE(chosen.choice);
  REQUIRE(chosen.choice->keys.size() == 2);
  std::string written;
  for (const Override& key : chosen.choice->keys) written += key.key_path + ": " + key.value + "\n";
  CHECK(parsed(changed({{"method: random\n", written}, {"run_cap: 8", "budget: {epochs: 4000}"}})).normalized ==
        chosen.normalized);
  REQUIRE(chosen.early_stopping.size() == 1);
  CHECK(chosen.early_stopping.front().rule == "asha");
}

TEST_CASE("a rule of early stopping that is given stays") {
  for (const std::string& given : {std::string("early_stopping: median"), std::string("early_stopping: none"),
                                   std::string("early_terminate: {type: hyperband, min_iter: 2}")}) {
    const std::string text = changed({{"method: random", given}, {"run_cap: 8", "budget: {epochs: 4000}"}});
    const StudyConfig config = parsed(text);
    REQUIRE(config.choice);
    CHECK(config.choice->keys.size() == 1);
    CHECK(config.normalized == parsed(changed({{given, given + "\nmethod: " + config.method}}, text)).normalized);
  }
}

TEST_CASE("a study follows results where it draws, stops or ends by what trials have shown") {
  const auto with = [](const std::string& lines) {
    return parsed(changed({{"method: random", lines}})).follows_results();
  };
  CHECK_FALSE(with("method: random"));
  CHECK_FALSE(with("method: sobol"));
  CHECK_FALSE(with("method: hyperband"));
  CHECK_FALSE(with("method: random\nearly_stopping: {name: patience, patience: 1}"));
  CHECK(with("method: tpe"));
  CHECK(with("method: hyperband\nhyperband: {sampler: gp}"));
  CHECK(with("method: random\nearly_stopping: asha"));
  CHECK(with("method: random\nearly_stopping: [{name: patience, patience: 1}, median]"));
  CHECK(parsed(kSample, {{"metric.target", "0.1"}}).follows_results());
}

TEST_CASE("a study that was begun keeps what was chosen") {
  const AutoChoice begun{{{"method", "tpe"}, {"early_stopping", "{name: median, min_trials: 3}"}}, "it was so"};
  const StudyConfig config = parse_config(changed({kUnnamed, {"{width: 4}", "{width: 64}"}}), "s.yaml", {}, begun);
  CHECK(config.method == "tpe");
  REQUIRE(config.early_stopping.size() == 1);
  CHECK(config.early_stopping.front().options.min_trials == 3);
  CHECK(config.choice->reason == "it was so");
  CHECK(parse_config(kSample, "s.yaml", {}, begun).normalized == parsed(kSample).normalized);  // it names one
}

TEST_CASE("a stored choice that is no choice is refused") {
  for (const AutoChoice& begun :
       std::vector<AutoChoice>{{{}, ""},
                               {{{"method", "auto"}}, ""},
                               {{{"method", "null"}}, ""},
                               {{{"method", "nonsense"}}, ""},
                               {{{"method", "[1"}}, ""},
                               {{{"method", "tpe"}, {"early_stopping", "{name: nonsense}"}}, ""}}) {
    CHECK_THROWS_AS(parse_config(changed({kUnnamed}), "s.yaml", {}, begun), Error);
  }
}

TEST_CASE("what auto reads is checked as ever") {
  CHECK(message_of(changed({kUnnamed, {"run_cap: 8", "run_cap: many"}})).starts_with("s.yaml:4: run_cap: found "));
  CHECK(message_of(changed({kUnnamed, {"epochs: 4", "epochs: 0"}})).find("train.epochs: found 0") != std::string::npos);
  CHECK(message_of(changed({kUnnamed, {"run_cap: 8\n", ""}})).find("run_cap: found nothing") != std::string::npos);
  CHECK(message_of(changed({{"method: random", "method: automatic"}})).find("method: found 'automatic'") !=
        std::string::npos);
}

}  // namespace
}  // namespace hfta::engine
