#include <catch2/catch.hpp>

#include "sample.hpp"

namespace hfta::engine {
namespace {

struct Case {
  std::vector<Change> changes;
  std::string message;  ///< Whole, or its beginning if it ends in "...".
};

const std::string kOptimizer = R"({name: adamw, lr: "${lr}"})";
const std::string kLr = "{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}";
const std::string kHidden = "{values: [32, 64]}";
const std::string kData = "{name: digits, batch_size: 64, validation: 0.2, test: 0.2}";

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string text = changed(c.changes);
    INFO(text);
    const std::string found = message_of(text);
    const bool prefix = c.message.ends_with("...");
    CHECK((prefix ? found.substr(0, c.message.size() - 3) + "..." : found) == c.message);
  }
}

TEST_CASE("the sample is valid, without warnings") {
  CHECK(message_of(kSample) == "");
  CHECK(parsed(kSample).warnings.empty());
}

TEST_CASE("what constraints leave out need be no task") {
  const Change nesterov = {kOptimizer, R"({name: sgd, nesterov: true, momentum: "${drop}", lr: "${lr}"})"};
  const auto with_constraint = [&](const std::string& constraint) {
    return message_of(
        changed({nesterov, {"array: {width: 4}", "array: {width: 4}\nconstraints: [" + constraint + "]"}}));
  };
  CHECK(with_constraint("drop > 0.1") == "");
  CHECK_THAT(with_constraint("drop < 0.1"), Catch::Contains("found true with momentum 0"));
}

TEST_CASE("values between 0 and 1 where logarithms are wanted are warned of") {
  const auto warnings = [](const std::string& bounds) {
    std::string text = kSample;
    const std::size_t begin = text.find("  lr: {") + 7, end = text.find('}', begin);
    return parsed(text.replace(begin, end - begin, bounds)).warnings;
  };
  REQUIRE(warnings("distribution: log_uniform, min: 0.001, max: 0.1").size() == 1);
  CHECK(warnings("distribution: log_uniform, min: 0.001, max: 0.1")[0] ==
        "s.yaml:8: parameters.lr: found log_uniform from 0.001 to 0.1, which are natural logarithms: its values are "
        "1.001 "
        "to 1.105; for values from 0.001 to 0.1: log_uniform_values");
  CHECK(warnings("distribution: log_uniform, min: -9, max: 0").empty());
  CHECK(warnings("distribution: log_uniform, min: 1, max: 4").empty());
  CHECK(warnings("distribution: log_uniform_values, min: 0.001, max: 0.1").empty());
}

TEST_CASE("syntax") {
  check({
      {{{"seed: 1", "seed: [1"}},
       "s.yaml:4: found text that is not YAML in column 7 (end of sequence flow not found), wanted YAML"},
      {{{"seed: 1", "seed: 1\nseed: 2"}}, "s.yaml:4: seed: found the key twice, first in line 3, wanted it once"},
      {{{"{width: 4}", "{width: 4, width: 5}"}},
       "s.yaml:24: array.width: found the key twice, first in line 24, wanted it once"},
      {{{"seed: 1", "seed: &s 1"}},
       "s.yaml:3: seed: found the anchor &s, wanted plain values: anchors and aliases ..."},
      {{{"seed: 1", "seed: *s"}}, "s.yaml:3: found an anchor or alias, wanted plain values: anchors and aliases ..."},
      {{{"seed: 1", "seed: !!int 1"}}, "s.yaml:3: seed: found a tag, wanted plain values: tags are not accepted ..."},
      {{{"seed: 1", "seed: ! 1"}}, "s.yaml:3: seed: found a tag, wanted plain values: tags are not accepted ..."},
      {{{"array: {width: 4}", "keep: \"all"}},
       "s.yaml:24: keep: found a text without its closing quote, wanted \" behind it"},
      {{{"array: {width: 4}", "keep: \"all\\\""}},
       "s.yaml:24: keep: found a text without its closing quote, wanted \" behind it"},
      {{{"seed: 1", "? [a]\n: 1"}}, "s.yaml:3: found a list or a map as a key, wanted a word"},
      {{{"seed: 1", "~: 1"}}, "s.yaml:3: found no word as a key, wanted a word"},
      {{{"array: {width: 4}", "---\na: 1"}}, "s.yaml:24: found a second document, wanted one"},
      {{{"seed: 1", "seed: \"\\0\""}}, "s.yaml:3: seed: found the character \\0, wanted text"},
      {{{"seed: 1", std::string("seed: \0", 7)}}, "s.yaml:3: found the control character 0x00, wanted text"},
      {{{"seed: 1", "seed: \x04"}}, "s.yaml:3: found the control character 0x04, wanted text"},
      {{{"seed: 1", "seed: \xff"}}, "s.yaml:3: found the byte 0xff, wanted UTF-8 text"},
      {{{"  lr: ", "\tlr: "}},
       "s.yaml:8: found text that is not YAML in column 4 (illegal map value), wanted YAML; indent by spaces, not by "
       "tabs"},
      {{{R"([64, "${hidden}"])", "[64, ${hidden}]"}},
       "s.yaml:14: found text that is not YAML in column 22 (end of sequence flow not found), wanted YAML; within [ ] "
       "and "
       "{ } write \"${name}\" in quotes"},
  });
}

TEST_CASE("keys") {
  check({
      {{{"seed: 1", "sead: 1"}},
       "s.yaml:3: sead: found an unknown key, wanted one of this section's; did you mean 'seed'?"},
      {{{"  epochs: 4", "  epoch: 4"}},
       "s.yaml:20: train.epoch: found an unknown key, wanted one of this section's; did you mean 'epochs'?"},
      {{{"{width: 4}", "{width: 4, zzzzzzz: 1}"}},
       "s.yaml:24: array.zzzzzzz: found an unknown key, wanted one of this section's; valid: width, device, threads, "
       "cache, refill, divide, lend"},
      {{{"seed: 1", "train.seed: 1"}}, "s.yaml:3: train.seed: found an unknown key, wanted one of this section's..."},
      {{{"  lr: {distribution: log_uniform_values,", "  lr: {distributon: log_uniform_values,"}},
       "s.yaml:8: parameters.lr.distributon: found an unknown key, wanted one of this section's; did you mean "
       "'distribution'?"},
      {{{"seed: 1", "early_terminate: {type: envelope, min_iter: 3}"}},
       "s.yaml:3: early_terminate.type: found 'envelope', wanted hyperband"},
      {{{"seed: 1", "early_terminate: {type: hyperband}"}},
       "s.yaml:3: early_terminate: found min_iter and max_iter both or neither, wanted one"},
      {{{"seed: 1", "early_terminate: {type: hyperband, max_iter: 27}"}},
       "s.yaml:3: early_terminate.max_iter: found max_iter without s, or s without max_iter, wanted both"},
      {{{"method: random", "method: hyperband\nearly_terminate: {type: hyperband, min_iter: 3}"}},
       "s.yaml:5: early_terminate: found it beside method: hyperband, which stops trials itself; wanted one of them"},
      {{{"method: random", "method: hyperband\nearly_stopping: [{name: threshold, upper: 9}, median]"}},
       "s.yaml:5: early_stopping.1.name: found median beside method: hyperband, which stops trials itself; wanted one "
       "of them"},
      {{{"method: random", "method: random\nearly_stopping: [{name: asha, mode: halt}]"}},
       "s.yaml:5: early_stopping.0.mode: found 'halt', wanted one of promote, stop"},
      {{{"method: random", "method: random\nearly_stopping: threshold"}},
       "s.yaml:5: early_stopping: found neither lower nor upper, wanted one of them"},
      {{{"method: random", "method: random\nearly_stopping: {name: threshold, lower: 2, upper: 2}"}},
       "s.yaml:5: early_stopping.lower: found 2, wanted a number below upper = 2"},
      {{{"method: random", "method: random\nearly_stopping: target"}},
       "s.yaml:5: early_stopping.value: found nothing, wanted a number"},
      {{{"method: random", "method: asha"}},
       "s.yaml:4: method: found 'asha', which stops trials rather than chooses them; wanted `early_stopping: asha` "
       "beside "
       "method: random"},
      {{{"method: random", "method: hyperband\nearly_stopping: asha"}},
       "s.yaml:5: early_stopping.name: found asha beside method: hyperband, which stops trials itself; wanted one of "
       "them"},
      {{{"method: random", "method: random\nearly_stopping: {name: asha, min_epochs: 5}"}},
       "s.yaml:5: early_stopping.min_epochs: found 5, wanted at most train.epochs = 4"},
      {{{"method: random", "method: random\nearly_stopping: {name: median, eta: 5}"}},
       "s.yaml:5: early_stopping.eta: found a key of asha, sha, bands, wanted a key of median: name, min_epochs, "
       "min_trials"},
      {{{"method: random", "method: random\nearly_stopping: meridian"}},
       "s.yaml:5: early_stopping.name: found 'meridian', wanted one of none, median, percentile, asha, sha, threshold, "
       "patience, target, bands, racing; did you mean 'median'?"},
      {{{"seed: 1", "program: train.py"}},
       "s.yaml:3: program: found this key, which has no meaning here, wanted the search part..."},
      {{{"goal: maximize", "goal: maximize, target: high"}}, "s.yaml:6: metric.target: found 'high', wanted a number"},
      {{{"run_cap: 8", "budget: {hours: 0}"}}, "s.yaml:5: budget.hours: found 0, wanted a number above 0"},
      {{{"run_cap: 8", "budget: {}"}}, "s.yaml:5: budget: found no budget, wanted hours, minutes, trials or epochs"},
      {{{"run_cap: 8", "run_cap: 8\nbudget: {trials: 8}"}},
       "s.yaml:6: budget.trials: found it beside run_cap, which means the same; wanted one of them"},
      {{{"run_cap: 8", "budget: {epochs: 8}\nearly_stopping: sha"}},
       "s.yaml:1: run_cap: found nothing, wanted the number of trials, which early_stopping: sha halves"},
      {{{"  layers:", "  zoo: resnet18\n  layers:"}},
       "s.yaml:12: model.zoo: found this key, which is not available in this version; wanted model.layers or..."},
      {{{kHidden, "{parameters: {a: {value: 1}}}"}},
       "s.yaml:10: parameters.hidden.parameters: found this key, which is not available in this version; nested..."},
      {{{"metric: {name: val_accuracy, goal: maximize}\n", ""}},
       "s.yaml:1: metric: found nothing, wanted a map of name and "
       "goal, or a list of 1 to 4 of them"},
      {{{"  epochs: 4\n", ""}}, "s.yaml:19: train.epochs: found nothing, wanted an integer from 1 to 1000000"},
      {{{"  loss: cross_entropy\n", ""}},
       "s.yaml:19: train.loss: found nothing, wanted one of cross_entropy, nll, ..."},
      {{{"train:\n  epochs: 4\n  loss: cross_entropy\n  optimizer: {name: adamw, lr: \"${lr}\"}\n  schedule: {name: "
         "cosine}\n",
         "train: 3\n"}},
       "s.yaml:19: train: found 3, wanted a map"},
      {{{"run_cap: 8\n", ""}},
       "s.yaml:1: run_cap: found nothing, wanted the number of trials: random search has no end of its own"},
  });
}

TEST_CASE("types and ranges") {
  check({
      {{{"seed: 1", "seed: -1"}}, "s.yaml:3: seed: found -1, wanted an integer from 0 to 2^53"},
      {{{"seed: 1", "seed: 1.0"}}, "s.yaml:3: seed: found 1.0, wanted an integer from 0 to 2^53"},
      {{{"seed: 1", "seed: 9223372036854775808"}},
       "s.yaml:3: seed: found 9223372036854775808, wanted an integer from 0 to 2^53"},
      {{{"seed: 1", "seed: one"}}, "s.yaml:3: seed: found 'one', wanted an integer from 0 to 2^53"},
      {{{"seed: 1", "seed: \"1\""}}, "s.yaml:3: seed: found '1', wanted an integer from 0 to 2^53; without quotes"},
      {{{"seed: 1", "seed: [1]"}}, "s.yaml:3: seed: found a list, wanted an integer from 0 to 2^53"},
      {{{"seed: 1", "seed:"}}, "s.yaml:3: seed: found nothing, wanted an integer from 0 to 2^53"},
      {{{"method: random", "method: randon"}},
       "s.yaml:4: method: found 'randon', wanted one of auto, grid, random, sobol, hyperband, bohb, dehb, "
       "freeze_thaw, tpe, gp, cmaes, evolution, nsga2, pbt; did you mean 'random'?"},
      {{{"run_cap: 8", "run_cap: 0"}}, "s.yaml:5: run_cap: found 0, wanted an integer from 1 to 1000000000"},
      {{{"goal: maximize", "goal: max"}}, "s.yaml:6: metric.goal: found 'max', wanted one of minimize, maximize"},
      {{{kOptimizer, "{name: adamw, lr: 1e}"}},
       "s.yaml:22: train.optimizer.lr: found '1e', wanted a number of at least 0"},
      {{{kOptimizer, "{name: adamw, lr: .nan}"}},
       "s.yaml:22: train.optimizer.lr: found .nan, wanted a number of at least 0 that is finite"},
      {{{kOptimizer, "{name: adamw, lr: .inf}"}},
       "s.yaml:22: train.optimizer.lr: found .inf, wanted a number of at least 0 that is finite"},
      {{{kOptimizer, "{name: adamw, lr: 1e400}"}},
       "s.yaml:22: train.optimizer.lr: found 1e400 (beyond the range of a double), wanted a number of at least 0"},
      {{{kOptimizer, "{name: adamw, lr: -1e-3}"}},
       "s.yaml:22: train.optimizer.lr: found -1e-3, wanted a number of at least 0"},
      {{{kOptimizer, "{name: adamw, betas: [0.9]}"}},
       "s.yaml:22: train.optimizer.betas: found a list, wanted a list of two numbers"},
      {{{kOptimizer, "{name: adamw, betas: [0.9, 1.0]}"}},
       "s.yaml:22: train.optimizer.beta2: found 1.0, wanted a number of at least 0 and below 1"},
      {{{kOptimizer, "{name: adamw, betas: [0.9, 0.99], beta1: 0.8}"}},
       "s.yaml:22: train.optimizer.beta1: found it beside betas, wanted one or the other"},
      {{{kOptimizer, "{name: adamw, momentum: 0.9}"}},
       "s.yaml:22: train.optimizer.momentum: found a key of sgd, rmsprop, wanted a key of adamw: name, lr, "
       "weight_decay, betas, "
       "beta1, beta2, eps, groups"},
      {{{kOptimizer, "{name: sgd, nesterov: true}"}},
       "s.yaml:22: train.optimizer.nesterov: found true with momentum 0 and dampening 0, wanted momentum above 0 and "
       "dampening 0"},
      {{{kOptimizer, "{name: sgd, nesterov: yes}"}},
       "s.yaml:22: train.optimizer.nesterov: found 'yes', wanted true or false"},
      {{{"{name: cosine}", "{name: cosine, gamma: 0.5}"}},
       "s.yaml:23: train.schedule.gamma: found a key of step, wanted a key of cosine: name, per, warmup, T_max, "
       "eta_min, start_factor"},
      {{{"{name: cosine}", "{name: cosine, warmup: 4}"}},
       "s.yaml:23: train.schedule.warmup: found 4 epochs, wanted fewer than the 4 of training, or the schedule never "
       "begins"},
      {{{"{name: cosine}", "{name: constant, warmup: 4.5}"}},
       "s.yaml:23: train.schedule.warmup: found 4.5 epochs, wanted fewer than the 4 of training, or the schedule never "
       "begins"},
      {{{"{name: cosine}", "{name: linear, start_factor: 0}"}},
       "s.yaml:23: train.schedule.start_factor: found 0, wanted a number above 0 and at most 1"},
      {{{"{name: cosine}", "cosin"}},
       "s.yaml:23: train.schedule.name: found 'cosin', wanted one of constant, step, cosine, linear; did you mean "
       "'cosine'?"},
      {{{"  loss: cross_entropy", "  clip_norm: 0\n  loss: cross_entropy"}},
       "s.yaml:21: train.clip_norm: found 0, wanted a number above 0"},
      {{{"  loss: cross_entropy", "  metrics: [mae]\n  loss: cross_entropy"}},
       "s.yaml:21: train.metrics.0: found 'mae', wanted a metric that goes with cross_entropy..."},
      {{{"  loss: cross_entropy", "  loss: {name: mse, label_smoothing: 0.1}"}},
       "s.yaml:21: train.loss.label_smoothing: found a key of cross_entropy, soft_cross_entropy, wanted a key of mse: "
       "name, output"},
      {{{"{width: 4}", "{width: 0}"}}, "s.yaml:24: array.width: found 0, wanted auto or an integer from 1 to 4096"},
      {{{"{width: 4}", "{width: 1000000000}"}},
       "s.yaml:24: array.width: found 1000000000, wanted auto or an integer from 1 to 4096"},
      {{{"{width: 4}", "{device: gpu}"}},
       "s.yaml:24: array.device: found 'gpu', wanted auto, cpu, cpu:N, cpu:N+cpu:N, cuda, cuda:N, all, or a list of "
       "devices"},
      {{{"{width: 4}", "{device: [cpu, cuda:x]}"}},
       "s.yaml:24: array.device: found 'cuda:x', wanted auto, cpu, cpu:N, cpu:N+cpu:N, cuda, cuda:N, all, or a list of "
       "devices"},
      {{{"{width: 4}", "{device: [cpu:1, cpu:0]}"}},
       "s.yaml:24: array.device: found 'cpu:0', wanted auto, cpu, cpu:N, cpu:N+cpu:N, cuda, cuda:N, all, or a list of "
       "devices"},
      {{{"{width: 4}", "{device: []}"}},
       "s.yaml:24: array.device: found an empty list, wanted auto, cpu, cpu:N, cpu:N+cpu:N, cuda, cuda:N, all, or a "
       "list "
       "of devices"},
      {{{"{width: 4}", "{device: cpu:1+cpu:2}"}}, "s.yaml:24: array.device: found 'cpu:1+cpu:2', wanted auto..."},
      {{{"{width: 4}", "{device: [cpu:1+cpu]}"}}, "s.yaml:24: array.device: found 'cpu:1+cpu', wanted auto..."},
      {{{"{width: 4}", "{device: cpu:1+}"}}, "s.yaml:24: array.device: found 'cpu:1+', wanted auto..."},
      {{{"{width: 4}", "{device: +cpu:1}"}}, "s.yaml:24: array.device: found '+cpu:1', wanted auto..."},
      {{{"{width: 4}", "{device: cuda:0+cuda:1}"}}, "s.yaml:24: array.device: found 'cuda:0+cuda:1', wanted auto..."},
      {{{"{width: 4}", "{device: [cpu, auto]}"}},
       "s.yaml:24: array.device: found auto among 2 devices, wanted it alone"},
      {{{"array: {width: 4}", "memory: {limit: 8G}"}},
       "s.yaml:24: memory.limit: found '8G', wanted auto or bytes (8GiB)"},
      {{{"array: {width: 4}", "memory: {limit: 0}"}}, "s.yaml:24: memory.limit: found 0, wanted auto or bytes (8GiB)"},
      {{{"array: {width: 4}", "memory: {limit: 0.2B}"}},
       "s.yaml:24: memory.limit: found '0.2B', wanted auto or bytes (8GiB)"},
      {{{"array: {width: 4}", "memory: {limit: [1]}"}},
       "s.yaml:24: memory.limit: found a list, wanted auto or bytes (8GiB)"},
      {{{"array: {width: 4}", "memory: {policy: swap}"}},
       "s.yaml:24: memory.policy: found 'swap', wanted one of auto, keep, recompute, compress"},
      {{{"array: {width: 4}", "memory: {policy: compress, sigma: 0}"}},
       "s.yaml:24: memory.sigma: found 0, wanted a number above 0 and at most 1"},
      {{{"array: {width: 4}", "memory: {policy: compress, interval: 0}"}},
       "s.yaml:24: memory.interval: found 0, wanted an integer from 1 to 1000000000"},
      {{{"array: {width: 4}", "memory: {policy: compress}\narray: {device: cpu:1+cpu:1}"}},
       "s.yaml:24: memory.policy: found compress with a device of several ranks, wanted devices of one process each"},
      {{{"array: {width: 4}", "memory: 8GiB"}}, "s.yaml:24: memory: found '8GiB', wanted a map"},
      {{{"study: sample", "study: \"a\\nb\""}},
       "s.yaml:1: study: found 'a\\x0ab', wanted a name of 1 to 200 printable characters"},
      {{{"storage: sample.db", "storage: postgresql://x/y"}},
       "s.yaml:2: storage: found 'postgresql://x/y', wanted a file such as digits.db..."},
  });
}

TEST_CASE("search space") {
  check({
      {{{kLr, "{min: 2, max: 1}"}}, "s.yaml:8: parameters.lr.min: found 2, wanted at most max = 1"},
      {{{kLr, "{distribution: log_uniform_values, min: 0, max: 1}"}},
       "s.yaml:8: parameters.lr.min: found 0, wanted more than 0 (the distribution is logarithmic)"},
      {{{kLr, "{min: 1}"}}, "s.yaml:8: parameters.lr.max: found nothing, wanted a number"},
      {{{kLr, "{min: .inf, max: 1}"}}, "s.yaml:8: parameters.lr.min: found .inf, wanted a number that is finite"},
      {{{kLr, "{min: \"0\", max: 1}"}}, "s.yaml:8: parameters.lr.min: found '0', wanted a number; without quotes"},
      {{{kLr, "{distribution: int_uniform, min: 0.5, max: 2}"}},
       "s.yaml:8: parameters.lr.min: found 0.5, wanted an integer"},
      {{{kLr, "{min: 0, max: 9007199254740993}"}},
       "s.yaml:8: parameters.lr.max: found 9007199254740993, wanted an integer between -2^53 and 2^53"},
      {{{kLr, "{min: -9223372036854775808, max: 0}"}},
       "s.yaml:8: parameters.lr.min: found -9223372036854775808, wanted an integer between -2^53 and 2^53"},
      {{{kLr, "{min: 0, max: 9223372036854775807}"}},
       "s.yaml:8: parameters.lr.max: found 9223372036854775807, wanted an integer between -2^53 and 2^53"},
      {{{kLr, "{min: 0, max: 9223372036854775808}"}},
       "s.yaml:8: parameters.lr.max: found 9223372036854775808, wanted an integer between -2^53 and 2^53"},
      {{{kLr, "{distribution: q_uniform, min: 0, max: 1, q: 0}"}},
       "s.yaml:8: parameters.lr.q: found 0, wanted a number above 0"},
      {{{kLr, "{distribution: normal, sigma: -1}"}},
       "s.yaml:8: parameters.lr.sigma: found -1, wanted a number of at least 0"},
      {{{kLr, "{distribution: normal, mu: 1, min: 0}"}},
       "s.yaml:8: parameters.lr.min: found a key of int_uniform, ..."},
      {{{kLr, "{distribution: uniforn, min: 0, max: 1}"}},
       "s.yaml:8: parameters.lr.distribution: found 'uniforn', wanted one of constant, ..."},
      {{{kLr, "0.1"}}, "s.yaml:8: parameters.lr: found 0.1, wanted a map"},
      {{{kLr, "{}"}},
       "s.yaml:8: parameters.lr: found neither value, values, nor min and max, wanted one of them, or a distribution"},
      {{{kHidden, "{values: []}"}}, "s.yaml:10: parameters.hidden.values: found none, wanted at least one value"},
      {{{kHidden, "{values: 32}"}},
       "s.yaml:10: parameters.hidden.values: found 32, wanted a list of numbers, words, true, false, null"},
      {{{kHidden, "{values: [[32]]}"}},
       "s.yaml:10: parameters.hidden.values.0: found a list, wanted null, true, false, a number or a word"},
      {{{kHidden, "{values: [32, .nan]}"}},
       "s.yaml:10: parameters.hidden.values.1: found .nan, wanted a finite number"},
      {{{kHidden, "{values: [32, 32]}"}},
       "s.yaml:10: parameters.hidden.values: found 32 twice, wanted each value once..."},
      {{{kHidden, "{values: [32, 64], probabilities: [0.5, 0.6]}"}},
       "s.yaml:10: parameters.hidden.probabilities: found the sum 1.1, wanted the sum 1"},
      {{{kHidden, "{values: [32, 64], probabilities: [1]}"}},
       "s.yaml:10: parameters.hidden.probabilities: found 1 of them, wanted one for each of the 2 values"},
      {{{kHidden, "{value: 32, values: [32]}"}},
       "s.yaml:10: parameters.hidden.values: found a key of categorical, wanted a key of constant: distribution, "
       "when, otherwise, value"},
      {{{"  lr: ", "  \"l{r\": "}},
       "s.yaml:8: parameters: found the name 'l{r', wanted 1 to 512 printable characters without braces"},
      {{{"method: random", "method: grid"}},
       "s.yaml:8: parameters.lr: found log_uniform_values, wanted finitely many values..."},
  });
}

TEST_CASE("references") {
  check({
      {{{"lr: \"${lr}\"", "lr: \"${lrr}\""}},
       "s.yaml:22: train.optimizer.lr: found ${lrr}, wanted the name of a parameter; did you mean 'lr'?"},
      {{{"\"${drop}\"", "\"${dorp}\""}},
       "s.yaml:15: model.layers.2.dropout: found ${dorp}, wanted the name of a parameter; did you mean 'drop'?"},
      {{{"lr: \"${lr}\"", "lr: \"${lr\""}}, "s.yaml:22: train.optimizer.lr: found '${lr', wanted ${name}"},
      {{{"lr: \"${lr}\"", "lr: \"${}\""}}, "s.yaml:22: train.optimizer.lr: found '${}', wanted ${name}"},
      {{{"seed: 1", "seed: ${lr}"}},
       "s.yaml:3: seed: found '${lr}', wanted an integer from 0 to 2^53: ${name} can stand under model, data and "
       "train"},
      {{{kHidden, "{values: [\"${lr}\"]}"}}, "s.yaml:10: parameters.hidden.values.0: found '${lr}', wanted ..."},
      {{{"epochs: 4", "epochs: \"${hidden}\""}},
       "s.yaml:20: train.epochs: found '${hidden}', wanted an integer from 1 to 1000000: all trials of a study share "
       "it"},
      {{{"epochs: 4", "epochs: 4\n  precision: \"${hidden}\""}},
       "s.yaml:21: train.precision: found '${hidden}', wanted one of float32, tf32, bfloat16: all trials of a study "
       "share it"},
      {{{"{dropout: \"${drop}\"}", "{\"${drop}\": 1}"}},
       "s.yaml:15: model.layers.2: found the key '${drop}', wanted a word: ${name} stands for values only"},
      {{{kLr, "{min: -1.0, max: 1.0}"}},
       "s.yaml:22: train.optimizer.lr: found -1 (from ${lr}), wanted a number of at least 0"},
      {{{kLr, "{values: [0.1, fast]}"}},
       "s.yaml:22: train.optimizer.lr: found 'fast' (from ${lr}), wanted a number of at least 0"},
      {{{"{min: 0.0, max: 0.7}", "{min: 0.0, max: 1.5}"}},
       "s.yaml:15: layers.2 (dropout): p: found 1.5, wanted a number from 0 to 1 (with drop=1.5, hidden=32)"},
      {{{kHidden, "{min: 0.5, max: 1.5}"}}, "s.yaml:14: layers.1 (linear): ..."},
      {{{kOptimizer, R"({name: sgd, nesterov: true, momentum: "${drop}", lr: "${lr}"})"}},
       "s.yaml:22: train.optimizer.nesterov: found true with momentum 0 and dampening 0, wanted momentum above 0 and "
       "dampening 0"},
  });
}

TEST_CASE("what a config says is cut in messages, however long it is") {
  const std::string word(100000, 'w');
  const std::string from =
      GENERATE("seed: 1", "metric: {name: val_accuracy", "hidden: ", "lr: \"${lr}\"", "{dropout: ");
  const std::string to = GENERATE_REF(std::string("W: "), "seed: &W ", "seed: \"${W\"", "W: {W: ", "lr: \"${W}\"",
                                      "metric: {name: W", "{W: ", "storage: W\nseed: 1");
  std::string text = to;
  for (std::size_t at = text.find('W'); at != std::string::npos; at = text.find('W', at + word.size())) {
    text.replace(at, 1, word);
  }
  CAPTURE(from, to);
  const std::string message = message_of(changed({{from, text}}));
  CHECK(message.size() < 1000);
}

TEST_CASE("layers") {
  check({
      {{{"{linear: [64, \"${hidden}\"]}", "{linear: [65, \"${hidden}\"]}"}},
       "s.yaml:14: layers.1 (linear): found input [N, 64], wanted [N, 65] (with hidden=32)"},
      {{{"[\"${hidden}\", 10]", "[32, 10]"}},
       "s.yaml:17: layers.4 (linear): found input [N, 64], wanted [N, 32] (with hidden=64)"},
      {{{"[\"${hidden}\", 10]", "[\"${hidden}\", 9]"}},
       "s.yaml:17: model: found output [N, 9], wanted [N, 10]: digits has 10 classes (with hidden=32)"},
      {{{"- relu", "- rellu"}},
       "s.yaml:16: model.layers.3: found 'rellu', wanted a kind of layer; did you mean 'relu'?"},
      {{{"- relu", "- {rellu: 1}"}},
       "s.yaml:16: model.layers.3: found 'rellu', wanted a kind of layer; did you mean 'relu'?"},
      {{{"- relu", "- {relu: , tanh: }"}},
       "s.yaml:16: model.layers.3: found the kinds 'relu' and 'tanh', wanted one kind of layer in an item of the list"},
      {{{"- relu", "- {name: x}"}}, "s.yaml:16: model.layers.3: found no kind of layer, wanted a layer such as..."},
      {{{"- relu", "- [relu]"}}, "s.yaml:16: model.layers.3: found a list, wanted a layer such as..."},
      {{{"- relu", "-"}}, "s.yaml:17: model.layers.3: found nothing, wanted a layer such as..."},
      {{{"- relu", "- 3"}}, "s.yaml:16: model.layers.3: found 3, wanted a layer such as..."},
      {{{"- relu", "- {dropout: {p: {a: 1}}}"}},
       "s.yaml:16: model.layers.3.dropout.p: found a map, wanted a finite number, true, false, a word or a list of "
       "integers"},
      {{{"- relu", "- {dropout: {p: .nan}}"}},
       "s.yaml:16: model.layers.3.dropout.p: found .nan, wanted a finite number..."},
      {{{"- relu", "- {dropout: {q: 0.1}}"}}, "s.yaml:16: layers.3 (dropout): found argument 'q', ..."},
      {{{"- relu", "- {reshape: [[1, x]]}"}}, "s.yaml:16: model.layers.3.reshape.0.1: found 'x', wanted an integer"},
      {{{"- relu", "- {relu: , name: 3}"}}, "s.yaml:16: model.layers.3.name: found 3, wanted a word"},
  });
}

TEST_CASE("data and metric") {
  check({
      {{{kData, "{batch_size: 64}"}},
       "s.yaml:18: data.train: found nothing, wanted a file of data (.npz, .npy, .csv, .safetensors, ...), or a "
       "built-in set: name: "
       "digits"},
      {{{kData, "{name: digit, batch_size: 64}"}},
       "s.yaml:18: data.name: found 'digit', wanted digits; did you mean 'digits'?"},
      {{{kData, "{name: digits, train: a.csv, batch_size: 64}"}},
       "s.yaml:18: data.name: found both name and train, wanted one of them"},
      {{{kData, "{name: digits, batch_size: 64, target: y}"}},
       "s.yaml:18: data.target: found a key of table, wanted a key of built-in: name, ..."},
      {{{kData, "{train: a.bin, batch_size: 64}"}},
       "s.yaml:18: data.window: found nothing, wanted how many tokens a sample has: a .bin file is read as raw tokens, "
       "unless it has a name of CIFAR's"},
      {{{kData, "{train: a.bin, window: 8, y: b, batch_size: 64}"}},
       "s.yaml:18: data.y: found a key of arrays, wanted a key of tokens: train, validation, test, window, stride, "
       "dtype, batch_size, shuffle, order, drop_last"},
      {{{kData, "{train: data_batch_1.bin, window: 8, batch_size: 64}"}},
       "s.yaml:18: data.window: found a key of tokens, wanted a key of arrays: train, validation, test, x, y, "
       "batch_size, shuffle, order, drop_last"},
      {{{kData, "{train: a.csv, batch_size: 64}"}}, "s.yaml:18: data.target: found nothing, wanted a word"},
      {{{kData, "{train: a.npz, target: y, batch_size: 64}"}},
       "s.yaml:18: data.target: found a key of table, wanted a key of arrays: train, ..."},
      {{{kData, "{train: a.npy, batch_size: 64}"}}, "s.yaml:18: data.y: found nothing, wanted the file of the targets"},
      {{{kData, "{train: a.npz, x: [], batch_size: 64}"}},
       "s.yaml:18: data.x: found an empty list, wanted a name or a list of names"},
      {{{"validation: 0.2", "validation: 0"}},
       "s.yaml:18: data.validation: found 0, wanted a fraction between 0 and 1, or a file"},
      {{{"validation: 0.2", "validation: 1.0"}},
       "s.yaml:18: data.validation: found 1.0, wanted a fraction between 0 and 1, or a file"},
      {{{"validation: 0.2", "validation: 0.8"}},
       "s.yaml:18: data.test: found 0.2 beside a validation of 0.8, wanted less than 1 together"},
      {{{"validation: 0.2", "validation: v.npz"}},
       "s.yaml:18: data.validation: found 'v.npz', wanted a fraction between 0 and 1 of the built-in data"},
      {{{"batch_size: 64", "batch_size: 0"}},
       "s.yaml:18: data.batch_size: found 0, wanted an integer from 1 to 1000000000"},
      {{{"batch_size: 64", "batch_size: 64, shuffle: twice"}},
       "s.yaml:18: data.shuffle: found 'twice', wanted true, false or once"},
      {{{"validation: 0.2, ", ""}},
       "s.yaml:6: metric.name: found 'val_accuracy', wanted train_loss: there is no validation set (data.validation "
       "adds one)"},
      {{{"name: val_accuracy", "name: val_acuracy"}},
       "s.yaml:6: metric.name: found 'val_acuracy', wanted a metric that this task records; did you mean "
       "'val_accuracy'? "
       "Recorded: train_loss, val_loss, val_accuracy, parameters"},
      {{{"name: val_accuracy", "name: test_accuracy"}},
       "s.yaml:6: metric.name: found 'test_accuracy', wanted a metric that this task records..."},
  });
}

TEST_CASE("hyperband") {
  check({
      {{{"method: random", "hyperband: {eta: 1}\nmethod: random"}},
       "s.yaml:4: hyperband.eta: found 1, wanted an integer from 2 to 1000"},
      {{{"method: random", "method: simulated_annealing"}},
       "s.yaml:4: method: found 'simulated_annealing', wanted one of auto, grid, random, sobol, hyperband, bohb, dehb, "
       "freeze_thaw, tpe, gp, cmaes, evolution, nsga2, pbt"},
      {{{"method: random", "hyperband: {max_epochs: 9}\nmethod: hyperband"}},
       "s.yaml:4: hyperband.max_epochs: found 9, wanted at most train.epochs = 4"},
      {{{"method: random", "hyperband: {min_epochs: 5}\nmethod: hyperband"}},
       "s.yaml:4: hyperband.min_epochs: found 5, wanted at most max_epochs = 4"},
      {{{"method: random", "hyperband: {eta: 1}\nmethod: hyperband"}},
       "s.yaml:4: hyperband.eta: found 1, wanted an integer from 2 to 1000"},
      {{{"method: random", "hyperband: 3\nmethod: hyperband"}}, "s.yaml:4: hyperband: found 3, wanted a map"},
      {{{"method: random", "method: hyperband"}, {"  epochs: 4\n", ""}},
       "s.yaml:1: hyperband.max_epochs: found nothing, wanted the most epochs a trial gets (or train.epochs)"},
  });
}

}  // namespace
}  // namespace hfta::engine
