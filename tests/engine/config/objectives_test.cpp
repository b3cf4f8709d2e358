// metric as a list: several objectives.
#include <catch2/catch.hpp>

#include "sample.hpp"
#include "search/methods.hpp"

namespace hfta::engine {
namespace {

using trials::Goal;

const std::string kOne = "metric: {name: val_accuracy, goal: maximize}";
const std::string kTwo = "metric: [{name: val_accuracy, goal: maximize}, {name: parameters}]";

Change metric(const std::string& text) { return {kOne, "metric: " + text}; }

}  // namespace

TEST_CASE("a list of metrics is several objectives, in its order") {
  const StudyConfig config = parsed(changed({{kOne, kTwo}}));
  const trials::Objectives wanted = {{"val_accuracy", Goal::kMaximize}, {"parameters", Goal::kMinimize}};
  CHECK(config.objectives == wanted);
  CHECK(config.has_several_objectives());
  CHECK(config.warnings.empty());
  CHECK_FALSE(parsed(kSample).has_several_objectives());
}

TEST_CASE("a list of one metric is that metric") {
  const StudyConfig config = parsed(changed({metric("[{name: val_accuracy, goal: maximize, select: best}]")}));
  CHECK(config.select_best);
  CHECK(config.normalized ==
        parsed(changed({metric("{name: val_accuracy, goal: maximize, select: best}")})).normalized);
}

TEST_CASE("what is recorded of several objectives tells their order, names and goals") {
  const std::string recorded = parsed(changed({{kOne, kTwo}})).normalized;
  CHECK(parsed(changed({metric("[{name: val_accuracy, goal: maximize, select: last}, {name: parameters}]")}))
            .normalized == recorded);
  for (const char* other : {"[{name: parameters}, {name: val_accuracy, goal: maximize}]",
                            "[{name: val_accuracy}, {name: parameters}]", "[{name: val_loss}, {name: parameters}]"}) {
    CHECK(parsed(changed({metric(other)})).normalized != recorded);
  }
  CHECK(parsed(changed({{kOne, kTwo}}), {{"metric.1.goal", "maximize"}}).objectives[1].goal == Goal::kMaximize);
}

TEST_CASE("the number of parameters may be an objective, alone or beside others") {
  CHECK(parsed(changed({metric("{name: parameters}")})).objectives.front().metric == "parameters");
  CHECK(parsed(changed({metric("{name: parameters, goal: maximize}")})).warnings.size() == 1);
}

TEST_CASE("several objectives want a method and rules that need no single order") {
  struct Case {
    std::vector<Change> changes;
    const char* words;
  };
  const Change two = {kOne, kTwo};
  const auto also = [](const std::string& lines) { return Change{"run_cap: 8", "run_cap: 8\n" + lines}; };
  const std::vector<Case> cases = {
      {{metric("[]")}, "s.yaml:6: metric: found 0 objectives, wanted 1 to 4"},
      {{metric("[{name: val_loss}, {name: val_accuracy}, {name: train_loss}, {name: parameters}, {name: val_loss}]")},
       "s.yaml:6: metric: found 5 objectives, wanted 1 to 4"},
      {{metric("[{name: val_loss}, {name: val_loss}]")},
       "s.yaml:6: metric.1.name: found val_loss twice, wanted each metric once"},
      {{metric("[{name: val_loss}, {name: val_acuracy}]")}, "metric.1.name: found 'val_acuracy'"},
      {{metric("[{name: val_loss}, {name: parameters, aim: minimize}]")}, "metric.1.aim: found an unknown key"},
      {{metric("[{name: val_loss}, {name: parameters, goal: least}]")}, "metric.1.goal: found 'least'"},
      {{metric("[{name: val_loss}, {goal: minimize}]")}, "metric.1.name"},
      {{metric("[{name: val_loss}, [parameters]]")}, "metric.1: found a list"},
      {{metric("[{name: val_loss, select: best}, {name: parameters}]")},
       "metric.0.select: found best among several objectives, wanted last: no epoch is best in all of them"},
      {{metric("[{name: val_loss}, {name: parameters, target: 5}]")},
       "metric.1.target: found it among several objectives, wanted a budget or run_cap: no value ends them all"},
      {{two, {"method: random", "method: tpe"}},
       "s.yaml:4: method: found tpe with 2 objectives, wanted one that needs no single order of trials: grid, random, "
       "sobol, nsga2"},
      {{two, also("early_stopping: median")},
       "early_stopping: found median with 2 objectives, wanted none: trials that nothing orders cannot fall behind"},
      {{two, also("early_terminate: {type: hyperband, min_iter: 2}")},
       "early_terminate: found bands with 2 objectives"},
      {{two, also("repeat: 3")}, "repeat: found 3 with 2 objectives, wanted one trial of each configuration"},
      {{two, also("folds: 2"), {", validation: 0.2", ""}}, "folds: found 2 with 2 objectives"},
  };
  for (const Case& c : cases) {
    INFO(c.words);
    CHECK_THAT(message_of(changed(c.changes)), Catch::Contains(c.words));
  }
}

TEST_CASE("every method takes several objectives or is refused for them") {
  int taken = 0;
  for (const search::Method& method : search::methods()) {
    const std::string name = method.name;
    const bool lists = method.needs_list;
    const std::string text = changed(
        {{kOne, kTwo},
         {"method: random", "method: " + name},
         {"  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}",
          lists ? "  lr: {values: [0.1, 0.2]}" : "  lr: {min: 0.1, max: 0.2}"},
         {"  drop: {min: 0.0, max: 0.7}", lists ? "  drop: {values: [0.1, 0.2]}" : "  drop: {min: 0.0, max: 0.7}"}});
    INFO(text);
    taken += method.takes_objectives ? 1 : 0;
    CHECK((message_of(text).find("with 2 objectives") == std::string::npos) == method.takes_objectives);
    if (method.takes_objectives) CHECK(message_of(text) == "");
  }
  CHECK(taken >= 4);
}

TEST_CASE("auto chooses a method for several objectives, and never stops their trials early") {
  const StudyConfig config =
      parsed(changed({{kOne, kTwo}, {"method: random", "method: auto"}, {"run_cap: 8", "budget: {epochs: 4000}"}}));
  CHECK(config.method == "nsga2");
  CHECK(config.early_stopping.empty());
  REQUIRE(config.choice);
  CHECK(config.choice->text() == "auto chose method: nsga2, because it learns for 2 objectives");
  CHECK(parsed(changed({{kOne, kTwo}, {"method: random", "method: auto"}})).method ==
        "sobol");  // too few to learn from
}

}  // namespace hfta::engine
