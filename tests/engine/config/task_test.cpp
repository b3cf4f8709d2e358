#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "sample.hpp"

namespace hfta::engine {
namespace {

using trials::DistributionKind;
using trials::Params;

const std::string kOptimizer = R"({name: adamw, lr: "${lr}"})";
const std::string kData = "{name: digits, batch_size: 64, validation: 0.2, test: 0.2}";
const std::string kLr = "{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}";

const Params kParams = {{"lr", 0.5}, {"drop", 0.25}, {"hidden", std::int64_t{64}}};

TEST_CASE("the sample, typed") {
  const StudyConfig config = parsed(kSample);
  CHECK(config.study == "sample");
  CHECK(config.storage == config.folder / "sample.db");
  CHECK(config.folder.is_absolute());
  CHECK(config.seed == 1);
  CHECK(config.method == "random");
  CHECK(config.run_cap == 8);
  CHECK(config.objectives.front().metric == "val_accuracy");
  CHECK(config.objectives.front().goal == trials::Goal::kMaximize);
  CHECK_FALSE(config.select_best);
  CHECK(config.width == 4);
  CHECK_FALSE(config.threads);
  CHECK(config.devices == std::vector<std::string>{"auto"});
  CHECK(config.keep == 10);
  CHECK(config.shape_changing == std::set<std::string>{"hidden"});
  CHECK(config.partition(kParams) == "hidden=64");
  REQUIRE(config.space.size() == 3);
  CHECK(config.space[0].name == "lr");
  CHECK(config.space[0].distribution.kind == DistributionKind::kLogUniformValues);
  CHECK(config.space[0].distribution.min == 1e-4);
  CHECK(config.space[1].distribution.kind == DistributionKind::kUniform);
  CHECK(config.space[2].distribution.kind == DistributionKind::kCategorical);
}

TEST_CASE("a trial's task") {
  const TaskSpec task = parsed(kSample).task(kParams);
  REQUIRE(task.layers.size() == 5);
  CHECK(task.layers[0].kind == "flatten");
  CHECK(task.layers[1].positional == std::vector<fusion::LayerArg>{std::int64_t{64}, std::int64_t{64}});
  CHECK(task.layers[1].where == "s.yaml:14");
  CHECK(task.layers[2].positional == std::vector<fusion::LayerArg>{0.25});
  CHECK(task.data.name == "digits");
  CHECK(task.data.validation == 0.2);
  CHECK(task.data.where == "s.yaml:18");
  CHECK(task.recipe.batch_size == 64);
  CHECK(task.recipe.epochs == 4);
  CHECK(task.recipe.loss == fusion::Loss::kCrossEntropy);
  CHECK(task.recipe.optimizer == fusion::OptimizerKind::kAdamW);
  CHECK(task.recipe.metrics == std::vector<fusion::MetricSpec>{{"accuracy"}});
  CHECK(task.hyper.optimizer.lr == 0.5);
  CHECK(task.hyper.optimizer.weight_decay == 0.01);
  CHECK(task.hyper.schedule.kind == fusion::ScheduleKind::kCosine);
  CHECK(task.hyper.schedule.t_max == 0);
  CHECK_FALSE(task.hyper.clip_norm);
  CHECK_FALSE(task.recipe.clips);
  CHECK_FALSE(task.seed);
  CHECK(task.order.shuffle);
}

TEST_CASE("a task outlives its config and needs every parameter") {
  const auto task = parsed(kSample).task;
  CHECK(task(kParams).hyper.optimizer.lr == 0.5);
  CHECK_THROWS_WITH(task({{"lr", 0.5}, {"drop", 0.1}}),
                    "s.yaml:14: model.layers.1.linear.1: found ${hidden}, wanted a trial that has this parameter");
  CHECK_THROWS_WITH(task({{"lr", -1.0}, {"drop", 0.1}, {"hidden", std::int64_t{64}}}),
                    "s.yaml:22: train.optimizer.lr: found -1 (from ${lr}), wanted a number of at least 0");
}

TEST_CASE("everything of the optimizer, the schedule and the rest of train") {
  const TaskSpec sgd =
      parsed(changed(
                 {{kOptimizer, "{name: sgd, lr: \"${lr}\", momentum: 0.9, weight_decay: 1e-4, nesterov: true}"},
                  {"{name: cosine}", "{name: step, step_size: 3, gamma: 0.5, per: step, warmup: 2, start_factor: 0.1}"},
                  {"  epochs: 4", "  epochs: 4\n  clip_norm: 2\n  dtype: float64\n  seed: 7"},
                  {"loss: cross_entropy", "loss: {name: cross_entropy, label_smoothing: 0.1}"}}))
          .task(kParams);
  CHECK(sgd.recipe.optimizer == fusion::OptimizerKind::kSgd);
  CHECK(sgd.hyper.optimizer.momentum == 0.9);
  CHECK(sgd.hyper.optimizer.weight_decay == 1e-4);
  CHECK(sgd.hyper.optimizer.nesterov);
  CHECK(sgd.hyper.schedule.kind == fusion::ScheduleKind::kStep);
  CHECK(sgd.hyper.schedule.step_size == 3);
  CHECK(sgd.hyper.schedule.gamma == 0.5);
  CHECK(sgd.hyper.schedule.per_step);
  CHECK(sgd.hyper.schedule.warmup == 2);
  CHECK(sgd.hyper.schedule.start_factor == 0.1);
  CHECK(sgd.hyper.clip_norm == 2.0);
  CHECK(sgd.recipe.dtype == fusion::DType::kFloat64);
  CHECK(sgd.recipe.precision == fusion::Precision::kFloat32);
  CHECK(sgd.seed == 7u);
  CHECK(sgd.hyper.loss == std::vector<double>{0.1});

  const TaskSpec adam = parsed(changed({{kOptimizer, "{name: adam, lr: \"${lr}\", betas: [0.8, 0.9], eps: 1e-6}"},
                                        {"{name: cosine}", "{name: linear, end_factor: 0.5, total_iters: 7}"}}))
                            .task(kParams);
  CHECK(adam.hyper.optimizer.beta1 == 0.8);
  CHECK(adam.hyper.optimizer.beta2 == 0.9);
  CHECK(adam.hyper.optimizer.eps == 1e-6);
  CHECK(adam.hyper.optimizer.weight_decay == 0);
  CHECK(adam.hyper.schedule.end_factor == 0.5);
  CHECK(adam.hyper.schedule.total_iters == 7);
}

TEST_CASE("a precision is for all trials, and float64 has none but its own") {
  const auto with = [](const std::string& lines) { return changed({{"epochs: 4", "epochs: 4\n  " + lines}}); };
  for (const auto precision : {fusion::Precision::kFloat32, fusion::Precision::kTf32, fusion::Precision::kBfloat16}) {
    const std::string name = name_of(precision);
    CHECK(parsed(with("precision: " + name)).task(kParams).recipe.precision == precision);
    const std::string beside_float64 = with("dtype: float64\n  precision: " + name);
    if (precision == fusion::Precision::kFloat32) {
      CHECK(parsed(beside_float64).task(kParams).recipe.precision == precision);
    } else {
      CHECK(message_of(beside_float64) ==
            "s.yaml:22: train.precision: found " + name + " with dtype float64, wanted float32");
    }
  }
  CHECK(message_of(with("precision: float16")) ==
        "s.yaml:21: train.precision: found 'float16', wanted one of float32, tf32, bfloat16; did you mean 'bfloat16'?");
}

TEST_CASE("which parameters split arrays is told from where they stand") {
  struct Case {
    std::vector<Change> changes;
    bool splits;
  };
  const std::string seeds = "{min: 1, max: 9}";
  const std::string use = "${lr}";
  const std::vector<Case> cases = {
      {{}, false},
      {{{kLr, seeds}, {kOptimizer, "adamw"}, {"epochs: 4", "epochs: 4\n  seed: ${lr}"}}, false},
      {{{kOptimizer, "adamw"}, {"epochs: 4", "epochs: 4\n  clip_norm: ${lr}"}}, false},
      {{{kOptimizer, "adamw"}, {"loss: cross_entropy", "loss: {name: cross_entropy, label_smoothing: \"${lr}\"}"}},
       false},
      {{{kLr, "{values: [step, cosine]}"}, {kOptimizer, "adamw"}, {"{name: cosine}", "${lr}"}}, false},
      {{{kLr, "{values: [epoch, step]}"}, {kOptimizer, "adamw"}, {"{name: cosine}", "{name: cosine, per: \"${lr}\"}"}},
       false},
      {{{kOptimizer, "{name: adam, betas: [\"${lr}\", 0.9]}"}, {kLr, "{min: 0.1, max: 0.9}"}}, false},
      {{{kOptimizer, "adamw"}, {"{dropout: \"${drop}\"}", "{dropout: {p: \"${lr}\"}}"}}, false},
      {{{kLr, "{values: [sgd, adam]}"}, {kOptimizer, "\"${lr}\""}}, true},
      {{{kLr, seeds}, {kOptimizer, "adamw"}, {"batch_size: 64", "batch_size: \"${lr}\""}}, true},
      {{{kLr, "{values: [relu, tanh]}"}, {kOptimizer, "adamw"}, {"- relu", "- ${lr}"}}, true},
      {{{kLr, "{values: [float32, float64]}"}, {kOptimizer, "adamw"}, {"epochs: 4", "epochs: 4\n  dtype: ${lr}"}},
       true},
      {{{kLr, "{values: [true, false]}"},
        {kOptimizer, "adamw"},
        {"batch_size: 64", "batch_size: 64, shuffle: \"${lr}\""}},
       true},
      {{{kLr, "{min: 0.1, max: 0.3}"}, {kOptimizer, "adamw"}, {"validation: 0.2", "validation: \"${lr}\""}}, true},
      {{{kLr, "{values: [dig, mini]}"},
        {kOptimizer, "adamw"},
        {kData, "{train: \"${lr}its.npz\", batch_size: 1, validation: 0.1}"}},
       true},
      {{{kLr, "{min: 0.1, max: 0.3}"}, {"- relu", "- {leaky_relu: \"${lr}\"}"}}, true},  // used twice; once is enough
  };
  for (const Case& c : cases) {
    const std::string text = changed(c.changes);
    INFO(text);
    CHECK(message_of(text) == "");
    CHECK(parsed(text).shape_changing.contains("lr") == c.splits);
  }
}

TEST_CASE("values take the place of ${name} with their types") {
  const auto config = parsed(changed(
      {{"{values: [32, 64]}",
        "{values: [32, 64]}\n  act: {values: [relu, tanh]}\n  clip: {values: [null, 2.0]}\n  "
        "width: {distribution: q_uniform, min: 8, max: 64, q: 8}\n  opt: {values: [sgd, adam]}"},
       {"- relu",
        "- ${act}\n    - {linear: [\"${hidden}\", \"${width}\"]}\n    - {linear: [\"${width}\", \"${hidden}\"]}"},
       {kOptimizer, "{name: \"${opt}\", momentum: 0.5, beta1: 0.8}"},
       {"epochs: 4", "epochs: 4\n  clip_norm: ${clip}"}}));
  Params params = {
      {"hidden", std::int64_t{32}}, {"drop", 0.0}, {"act", std::string("tanh")}, {"clip", {}}, {"width", 16.0},
      {"opt", std::string("sgd")}};
  const TaskSpec sgd = config.task(params);
  CHECK(sgd.layers[3].kind == "tanh");
  CHECK(sgd.layers[4].positional[1] == fusion::LayerArg(16.0));
  CHECK_FALSE(sgd.hyper.clip_norm);
  CHECK(sgd.recipe.clips);  // as others of its array may
  CHECK(sgd.hyper.optimizer.momentum == 0.5);
  params[3].second = 2.0;
  params[5].second = std::string("adam");
  const TaskSpec adam = config.task(params);
  CHECK(adam.hyper.clip_norm == 2.0);
  CHECK(adam.hyper.optimizer.momentum == 0);
  CHECK(adam.hyper.optimizer.beta1 == 0.8);
  CHECK(config.shape_changing == std::set<std::string>{"hidden", "act", "width", "opt"});
  CHECK(config.warnings ==
        std::vector<std::string>{
            "s.yaml:8: parameters.lr: found it used nowhere, wanted \"${lr}\" under model, data or train"});
}

TEST_CASE("forms of a layer") {
  const auto layers = parsed(changed({{"- relu",
                                       "- {relu: , name: act}\n    - {linear: {in_features: \"${hidden}\", "
                                       "out_features: \"${hidden}\", bias: false, name: mid}}\n"
                                       "    - {add: act}\n    - reshape: [1, 32, 32]\n      name: square\n   "
                                       " - {max_pool2d: {kernel_size: [1, 1]}}\n    - flatten\n"
                                       "    - {linear: [1024, \"${hidden}\"], bias: false}"},
                                      {"{values: [32, 64]}", "{value: 1024}"},
                                      {"[64, \"${hidden}\"]", "{in_features: 64, out_features: \"${hidden}\"}"}}))
                          .task({{"lr", 0.1}, {"drop", 0.1}, {"hidden", std::int64_t{1024}}})
                          .layers;
  REQUIRE(layers.size() == 11);
  CHECK(layers[3].kind == "relu");
  CHECK(layers[3].name == "act");
  CHECK(layers[3].positional.empty());
  CHECK(layers[4].name == "mid");
  CHECK(layers[4].named == std::vector<std::pair<std::string, fusion::LayerArg>>{{"in_features", std::int64_t{1024}},
                                                                                 {"out_features", std::int64_t{1024}},
                                                                                 {"bias", false}});
  CHECK(layers[5].positional == std::vector<fusion::LayerArg>{std::string("act")});
  CHECK(layers[6].name == "square");
  CHECK(layers[6].positional.size() == 3);
  CHECK(layers[9].positional.size() == 2);
  CHECK(layers[9].named == std::vector<std::pair<std::string, fusion::LayerArg>>{{"bias", false}});
  CHECK(layers[7].named[0].second == fusion::LayerArg(std::vector<std::int64_t>{1, 1}));
}

TEST_CASE("distributions and their inference") {
  const std::vector<std::pair<std::string, DistributionKind>> cases = {
      {"{value: 0.1}", DistributionKind::kConstant},
      {"{values: [0.1, 0.2]}", DistributionKind::kCategorical},
      {"{values: [0.1, 0.2], probabilities: [0.25, 0.75]}", DistributionKind::kCategorical},
      {"{min: 1, max: 3}", DistributionKind::kIntUniform},
      {"{min: 1, max: 3.0}", DistributionKind::kUniform},
      {"{min: 1e-4, max: 1}", DistributionKind::kUniform},
      {"{distribution: uniform, min: 1, max: 3}", DistributionKind::kUniform},
      {"{distribution: q_uniform, min: 0, max: 1, q: 0.1}", DistributionKind::kQUniform},
      {"{distribution: log_uniform, min: -3, max: 0}", DistributionKind::kLogUniform},
      {"{distribution: q_log_uniform, min: 0, max: 3}", DistributionKind::kQLogUniform},
      {"{distribution: q_log_uniform_values, min: 1, max: 30, q: 2}", DistributionKind::kQLogUniformValues},
      {"{distribution: inv_log_uniform, min: -3, max: 0}", DistributionKind::kInvLogUniform},
      {"{distribution: inv_log_uniform_values, min: 0.1, max: 1}", DistributionKind::kInvLogUniformValues},
      {"{distribution: normal, mu: 5}", DistributionKind::kNormal},
      {"{distribution: q_normal, mu: 9, sigma: 1, q: 1}", DistributionKind::kQNormal},
      {"{distribution: log_normal}", DistributionKind::kLogNormal},
      {"{distribution: q_log_normal, mu: 2, q: 0.5}", DistributionKind::kQLogNormal}};
  for (const auto& [text, kind] : cases) {
    INFO(text);
    const std::string config = changed({{kLr, text}});
    CHECK(message_of(config) == "");
    CHECK(parsed(config).space[0].distribution.kind == kind);
  }
  CHECK(parsed(changed({{kLr, "{distribution: q_uniform, min: 0, max: 8, q: 2}"}})).space[0].distribution.integer);
  CHECK_FALSE(
      parsed(changed({{kLr, "{distribution: q_uniform, min: 0, max: 1, q: 0.1}"}})).space[0].distribution.integer);
  CHECK_FALSE(
      parsed(changed({{kLr, "{distribution: q_uniform, min: 0.5, max: 8, q: 1}"}})).space[0].distribution.integer);
}

TEST_CASE("data sources") {
  const auto source = [](const std::string& data) { return parsed(changed({{kData, data}})).task(kParams); };
  const TaskSpec npz = source(
      "{train: ../d/a.npz, validation: v.npz, test: 0.1, x: [a, b], y: c, batch_size: 8, shuffle: once, order: "
      "per_trial, drop_last: true}");
  CHECK(npz.data.train.is_absolute());
  CHECK(npz.data.train.filename() == "a.npz");
  CHECK(npz.data.train == npz.data.train.lexically_normal());
  CHECK(npz.data.validation_file.filename() == "v.npz");
  CHECK_FALSE(npz.data.validation);
  CHECK(npz.data.test == 0.1);
  CHECK(npz.data.x == std::vector<std::string>{"a", "b"});
  CHECK(npz.data.y == "c");
  CHECK(npz.order.once);
  CHECK(npz.order.per_trial);
  CHECK(npz.drop_last);
  const TaskSpec csv =
      source("{train: /abs/a.CSV, validation: 0.1, target: 1, features: [u, v], batch_size: 8, shuffle: false}");
  CHECK(csv.data.train == "/abs/a.CSV");
  CHECK(csv.data.target == "1");
  CHECK(csv.data.features == std::vector<std::string>{"u", "v"});
  CHECK_FALSE(csv.order.shuffle);
  const TaskSpec pair = source("{train: a.npy, y: b.npy, validation: 0.1, batch_size: 8}");
  CHECK(pair.data.x.empty());
  CHECK(pair.data.y == "b.npy");
}

TEST_CASE("hyperband and train.epochs stand in for each other") {
  const auto hyperband = [](const std::string& section, const std::string& epochs) {
    return parsed(
        changed({{"method: random", section + "method: hyperband"}, {"run_cap: 8\n", ""}, {"  epochs: 4\n", epochs}}));
  };
  const StudyConfig from_epochs = hyperband("", "  epochs: 9\n");
  CHECK(from_epochs.method_options.hyperband.max_epochs == 9);
  CHECK(from_epochs.method_options.hyperband.eta == 3);
  CHECK_FALSE(from_epochs.run_cap);
  CHECK(hyperband("hyperband: {max_epochs: 8, eta: 2}\n", "").task(kParams).recipe.epochs == 8);
  const StudyConfig shorter = hyperband("hyperband: {max_epochs: 4}\n", "  epochs: 9\n");
  CHECK(shorter.method_options.hyperband.max_epochs == 4);
  CHECK(shorter.task(kParams).recipe.epochs == 9);
}

TEST_CASE("warnings") {
  CHECK(parsed(changed({{", goal: maximize", ""}})).warnings ==
        std::vector<std::string>{
            "s.yaml:6: metric.goal: val_accuracy is to be minimized; wanted goal: maximize, if larger is better"});
  CHECK(parsed(changed({{"val_accuracy", "val_loss"}})).warnings.size() == 1);
  CHECK(parsed(changed({{"method: random", "method: random\nhyperband: {eta: 4}"}})).warnings ==
        std::vector<std::string>{"s.yaml:5: hyperband: found it beside method: random, which does not use it"});
  CHECK(parsed(changed({{"lr: \"${lr}\"", "lr: 0.1"}})).warnings.size() == 1);
}

TEST_CASE("names that are paths stay in the config's folder") {
  const StudyConfig config = parsed(changed({{"study: sample\n", "study: ../../up\n"}, {"storage: sample.db\n", ""}}));
  CHECK(config.storage == config.folder / ".._.._up.db");
  CHECK(parsed(changed({{"storage: sample.db", "storage: sqlite:////tmp/x.db"}})).storage == "/tmp/x.db");
  CHECK(parsed(changed({{"storage: sample.db", "storage: sqlite:///x.db"}})).storage == config.folder / "x.db");
  CHECK(parsed(changed({{"study: sample\n", ""}})).study == "s");
}

}  // namespace
}  // namespace hfta::engine
