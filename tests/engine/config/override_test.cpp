#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

const trials::Params kParams = {{"lr", 0.5}, {"drop", 0.25}, {"hidden", std::int64_t{64}}};

TEST_CASE("devices are a word or a list of words") {
  const std::pair<const char*, std::vector<std::string>> cases[] = {{"cpu", {"cpu"}},
                                                                    {"[all]", {"all"}},
                                                                    {"[cuda:0,cuda:1]", {"cuda:0", "cuda:1"}},
                                                                    {"[cpu, cpu, cuda:12]", {"cpu", "cpu", "cuda:12"}},
                                                                    {"cpu:3", {"cpu:3"}},
                                                                    {"[cpu:1,cpu:3]", {"cpu:1", "cpu:3"}},
                                                                    {"cpu:2+cpu:2", {"cpu:2+cpu:2"}},
                                                                    {"[cpu:1+cpu:1,cpu]", {"cpu:1+cpu:1", "cpu"}}};
  for (const auto& [text, devices] : cases) CHECK(parsed(kSample, {{"array.device", text}}).devices == devices);
}

TEST_CASE("CPU devices have the threads that they name, and divide the others") {
  struct Case {
    std::vector<std::string> devices;
    int all;
    std::vector<int> wanted;
  };
  const std::vector<Case> cases = {{{"cpu"}, 8, {8}},
                                   {{"cpu", "cpu"}, 8, {4, 4}},
                                   {{"cpu", "cpu", "cpu"}, 8, {2, 2, 2}},
                                   {{"cpu:1", "cpu:3"}, 8, {1, 3}},
                                   {{"cpu:3", "cpu", "cpu"}, 8, {3, 2, 2}},
                                   {{"cpu:2+cpu:2", "cpu"}, 8, {2, 4}},
                                   {{"cpu:8", "cpu"}, 4, {8, 1}},
                                   {{"cuda:0", "cpu"}, 6, {6, 6}},
                                   {{}, 6, {}}};
  for (const Case& c : cases) {
    CAPTURE(c.devices);
    CHECK(threads_of(c.devices, c.all) == c.wanted);
  }
  for (const char* word :
       {"cpu", "cpu:", "cpu:0", "cpu:-1", "cpu:01", "cpu:1 ", "cpu:x", "cpu:4097", "cuda:1", "cpu:99999999999"}) {
    CHECK_FALSE(cpu_threads(word));
  }
  CHECK(cpu_threads("cpu:4096") == 4096);
}

TEST_CASE("--set replaces and adds") {
  const StudyConfig config = parsed(kSample, {{"train.epochs", "9"},
                                              {"array.device", "cuda:1"},
                                              {"run_cap", "100"},
                                              {"train.optimizer", "{name: sgd, lr: 1e-2}"},
                                              {"train.optimizer.momentum", "0.9"},
                                              {"train.schedule", "step"},
                                              {"train.schedule.gamma", "0.5"},
                                              {"train.loss.label_smoothing", "0.1"},
                                              {"parameters.drop.max", "0.5"},
                                              {"model.layers.3", "tanh"},
                                              {"model.layers.2.dropout", "0.125"},
                                              {"data.shuffle", "false"}});
  const TaskSpec task = config.task(kParams);
  CHECK(task.recipe.epochs == 9);
  CHECK(config.devices == std::vector<std::string>{"cuda:1"});
  CHECK(config.width == 4);
  CHECK(config.run_cap == 100);
  CHECK(task.recipe.optimizer == fusion::OptimizerKind::kSgd);
  CHECK(task.hyper.optimizer.lr == 0.01);
  CHECK(task.hyper.optimizer.momentum == 0.9);
  CHECK(task.hyper.schedule.kind == fusion::ScheduleKind::kStep);
  CHECK(task.hyper.schedule.gamma == 0.5);
  CHECK(task.hyper.loss == std::vector<double>{0.1});
  CHECK(config.space[1].distribution.max == 0.5);
  CHECK(task.layers[3].kind == "tanh");
  CHECK(task.layers[3].where == "--set model.layers.3");
  CHECK(task.layers[2].positional == std::vector<fusion::LayerArg>{0.125});
  CHECK_FALSE(task.order.shuffle);
  CHECK(parsed("{}", {{"study", "x"},
                      {"method", "grid"},
                      {"metric", "{name: train_loss}"},
                      {"parameters.a.value", "1"},
                      {"model.layers", "[flatten, {linear: [64, 10]}]"},
                      {"data", "{name: digits, batch_size: 1}"},
                      {"train.epochs", "1"},
                      {"train.loss", "cross_entropy"},
                      {"train.optimizer", "sgd"}})
            .study == "x");
}

TEST_CASE("--set errors name the flag") {
  const std::vector<std::pair<Override, std::string>> cases = {
      {{"model.foo", "1"},
       "--set model.foo: found an unknown key, wanted one of this section's; valid: layers, file, evaluation, "
       "freeze, bind, init, adapters"},
      {{"modl.layers", "[relu]"},
       "--set modl.layers: modl: found an unknown key, wanted one of this section's; did you mean 'model'?"},
      {{"train.optimizer.lrr", "1"},
       "--set train.optimizer.lrr: found an unknown key, wanted one of this section's; did you mean 'lr'?"},
      {{"train.optimizer.lr", "fast"}, "--set train.optimizer.lr: found 'fast', wanted a number of at least 0"},
      {{"train.optimizer.lr", "[1"}, "--set train.optimizer.lr: found '[1', wanted a value as YAML has it"},
      {{"train.optimizer.lr", "${nope}"},
       "--set train.optimizer.lr: found ${nope}, wanted the name of a parameter; valid: lr, drop, hidden"},
      {{"model.layers.9", "relu"}, "--set model.layers.9: found '9', wanted a position from 0 to 4"},
      {{"model.layers.x", "relu"}, "--set model.layers.x: found 'x', wanted a position from 0 to 4"},
      {{"model.layers.-1", "relu"}, "--set model.layers.-1: found '-1', wanted a position from 0 to 4"},
      {{"model.layers.3.p", "1"},
       "--set model.layers.3.p: found 'relu' at model.layers.3, wanted a map or a list to set 'p' in"},
      {{"seed.x", "1"}, "--set seed.x: found 1 at seed, wanted a map or a list to set 'x' in"},
      {{"", "1"}, "--set : found an empty key, wanted key.path=value"},
      {{"train..lr", "1"}, "--set train..lr: found an empty key, wanted key.path=value"},
      {{"run_cap", "0"}, "--set run_cap: found 0, wanted an integer from 1 to 1000000000"},
      {{"run_cap", "0", "--trials"}, "--trials: found 0, wanted an integer from 1 to 1000000000"},
      {{"model.layers.1.linear.0", "63"},
       "s.yaml:14: layers.1 (linear): found input [N, 64], wanted [N, 63] (with hidden=32)"},
      {{"parameters.lr.min", "2"}, "--set parameters.lr.min: found 2, wanted at most max = 1"},
  };
  for (const auto& [override, message] : cases) {
    INFO(override.key_path << " = " << override.value);
    CHECK(message_of(kSample, {override}) == message);
  }
}

}  // namespace
}  // namespace hfta::engine
