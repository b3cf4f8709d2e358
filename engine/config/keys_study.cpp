#include <utility>

#include "engine/config/key_tables.hpp"
#include "engine/division/division.hpp"
#include "fusion/memory_policy.hpp"
#include "trials/space.hpp"

namespace hfta::engine::configuration {
namespace {

std::vector<std::string> distributions_that(bool (*are)(trials::DistributionKind kind)) {
  std::vector<std::string> names;
  for (const trials::DistributionInfo& info : trials::distributions()) {
    if (are(info.kind)) names.emplace_back(info.name);
  }
  return names;
}

}  // namespace

std::vector<Key> top_keys() {
  std::vector<Key> keys = {
      {.path = "study",
       .type = KeyType::kWord,
       .fallback = "the config's file name without its extension",
       .sentence = "Name of the study in its store."},
      {.path = "storage",
       .type = KeyType::kOther,
       .fallback = "<study>.db",
       .wanted = "a file, or sqlite:///file",
       .sentence = "The SQLite file the study is kept in. Relative to the config's folder."},
      {.path = "seed",
       .type = KeyType::kInteger,
       .fallback = "0",
       .least = 0,
       .most = kMostInteger,
       .sentence = "Seed of the study: of its draws, its split of the data, its order of samples, its weights."},
  };
  for (Key& key : method_keys()) keys.push_back(std::move(key));
  for (Key& key : repetition_keys()) keys.push_back(std::move(key));
  const std::vector<Key> others = {
      {.path = "early_stopping",
       .type = KeyType::kSection,
       .fallback = "none",
       .sentence =
           "When trials are stopped early. A word, or a map of the keys below, or a list of such words and maps: "
           "a trial ends when any of them says so."},
      {.path = "early_terminate",
       .type = KeyType::kSection,
       .fallback = "none",
       .sentence = "The same in the words of a W&B sweep."},
      {.path = "run_cap",
       .type = KeyType::kInteger,
       .fallback = "grid: all of it; hyperband: one pass; random: required, unless there is a budget",
       .least = 1,
       .most = kMostCount,
       .sentence = "How many configurations there are in all: trials, unless `repeat` or `folds` gives each of them "
                   "several. May be raised later: the study goes on."},
      {.path = "budget",
       .type = KeyType::kSection,
       .fallback = "none",
       .sentence = "What the study may use, over all of its runs. It then ends with the best there is; a larger budget "
                   "goes on."},
      {.path = "metric",
       .type = KeyType::kSection,
       .wanted = "a map of name and goal, or a list of 1 to 4 of them",
       .sentence = "What is optimised. A map of the keys below; or a list of such maps, each an objective: "
                   "[several objectives](search.md#several-objectives)."},
      {.path = "parameters",
       .type = KeyType::kSection,
       .sentence = "The search space: a map of names, each with its distribution (keys below)."},
      {.path = "constraints",
       .type = KeyType::kOther,
       .fallback = "none",
       .wanted = "a list of comparisons: [\"hidden2 <= hidden1\"]",
       .sentence = "What every configuration meets: arithmetic over parameters that are numbers, as in "
                   "[formulas](metrics.md#formulas), and one of <=, >=, <, >, ==, != between two of them."},
      {.path = "points",
       .type = KeyType::kOther,
       .fallback = "none",
       .wanted = "a list of maps of parameters to values: [{lr: 0.1}]",
       .sentence = "Configurations that are tried first; what one leaves out is drawn."},
      {.path = "warm_start",
       .type = KeyType::kSection,
       .fallback = "none",
       .sentence = "An earlier study, ours or Optuna's, from whose trials a method that learns begins."},
      {.path = "model", .type = KeyType::kSection, .sentence = "What is trained."},
      {.path = "data", .type = KeyType::kSection, .sentence = "What it is trained on."},
      {.path = "train", .type = KeyType::kSection, .sentence = "How it is trained."},
      {.path = "array",
       .type = KeyType::kSection,
       .fallback = "",
       .sentence = "How trials are packed. May be changed while a study runs."},
      {.path = "memory",
       .type = KeyType::kSection,
       .fallback = "",
       .sentence = "What arrays may hold of a device's memory, and how they keep to it: [memory.md](memory.md). May be "
                   "changed while a study runs, but for `policy: compress`."},
      {.path = "keep",
       .type = KeyType::kInteger,
       .fallback = "10",
       .least = 0,
       .most = kMostCount,
       .sentence = "Of how many of the best finished trials the weights are kept."},
      {.path = "metric.name",
       .type = KeyType::kWord,
       .sentence = "`train_loss`, `val_loss`, `val_` and one of `train.metrics`, or `parameters`: how many "
                   "parameters a trial trains."},
      {.path = "metric.goal",
       .type = KeyType::kChoice,
       .fallback = "minimize",
       .choices = {"minimize", "maximize"},
       .sentence = "Whether smaller or larger values are better. Required for a formula of `train.metrics`."},
      {.path = "metric.select",
       .type = KeyType::kChoice,
       .fallback = "last",
       .choices = {"last", "best"},
       .sentence = "Which epoch's value a trial gets; `best` also keeps that epoch's weights. Of several objectives "
                   "the last epoch's."},
      {.path = "metric.target",
       .fallback = "none",
       .sentence = "The study ends when a trial has reached this value, which makes the trial complete; with `repeat` "
                   "or `folds`, when all repetitions of a configuration have ended and its value, as `rank` says, has "
                   "reached it. Not of several objectives."},
  };
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

std::vector<Key> budget_keys() {
  return {
      {.path = "budget.hours", .fallback = "none", .least = 0, .above = true, .sentence = "Time that runs take."},
      {.path = "budget.minutes",
       .fallback = "none",
       .least = 0,
       .above = true,
       .sentence = "The same; both are added."},
      {.path = "budget.trials",
       .type = KeyType::kInteger,
       .fallback = "none",
       .least = 1,
       .most = kMostCount,
       .sentence = "Another word for `run_cap`."},
      {.path = "budget.epochs",
       .type = KeyType::kInteger,
       .fallback = "none",
       .least = 1,
       .most = kMostInteger,
       .sentence = "Epochs of all trials together; not one more is trained."},
      {.path = "warm_start.study", .type = KeyType::kWord, .sentence = "Its name."},
      {.path = "warm_start.storage",
       .type = KeyType::kWord,
       .sentence = "The store that it is in, as `storage`. It is read when the study begins, and not again."},
  };
}

std::vector<Key> parameter_keys() {
  const std::vector<std::string> ranges = distributions_that(trials::is_bounded);
  const std::vector<std::string> normals = distributions_that(trials::is_normal);
  const std::vector<std::string> quantized = distributions_that(trials::is_quantized);
  return {
      {.path = "parameters.*.distribution",
       .type = KeyType::kChoice,
       .fallback = "by the other keys",
       .choices = trials::distribution_names(),
       .sentence =
           "As in a W&B sweep. By default: constant for `value`, categorical for `values`, int_uniform for whole "
           "`min` and `max`, else uniform."},
      {.path = "parameters.*.when",
       .type = KeyType::kOther,
       .fallback = "always",
       .wanted = "a map of parameters to a value or a list of values: {optimizer: sgd}",
       .sentence =
           "The parameter applies to trials in which all of these parameters apply and have one of these values; "
           "other trials do not have it."},
      {.path = "parameters.*.otherwise",
       .type = KeyType::kOther,
       .fallback = "null",
       .wanted = "null, true, false, a number or a word",
       .sentence = "What `${name}` is in a trial to which the parameter does not apply; null is refused by keys that "
                   "need a value."},
      {.path = "parameters.*.value",
       .type = KeyType::kOther,
       .only = {"constant"},
       .wanted = "null, true, false, a number or a word",
       .sentence = "The one value."},
      {.path = "parameters.*.values",
       .type = KeyType::kOther,
       .only = {"categorical"},
       .wanted = "a list of numbers, words, true, false, null",
       .sentence = "The values to choose from."},
      {.path = "parameters.*.probabilities",
       .type = KeyType::kOther,
       .fallback = "all equal",
       .only = {"categorical"},
       .wanted = "a list of numbers",
       .sentence = "One per value; they add up to 1. Of a finite space, which is tried as a whole, likelier values "
                   "come sooner."},
      {.path = "parameters.*.min",
       .only = ranges,
       .sentence =
           "Least value; of (inv_)(q_)log_uniform, its natural logarithm. q_* round to a multiple of `q`, which may "
           "lie up to half of `q` outside."},
      {.path = "parameters.*.max",
       .only = ranges,
       .sentence = "Greatest value, included; of (inv_)(q_)log_uniform, its natural logarithm. q_* round likewise."},
      {.path = "parameters.*.mu",
       .fallback = "0",
       .only = normals,
       .sentence = "Mean (of the logarithm, for log_normal and q_log_normal)."},
      {.path = "parameters.*.sigma",
       .fallback = "1",
       .least = 0,
       .only = normals,
       .sentence = "Standard deviation (of the logarithm, for log_normal and q_log_normal)."},
      {.path = "parameters.*.q",
       .fallback = "1",
       .least = 0,
       .above = true,
       .only = quantized,
       .sentence = "Values are rounded to multiples of q; they are integers where q and the range's ends are."},
  };
}

std::vector<Key> array_keys() {
  Key divide = {
      .path = "array.divide",
      .type = KeyType::kChoice,
      .fallback = "auto",
      .sentence =
          "What the parts of a device such as `cpu:1+cpu:1` share: every batch, by their measured speeds or "
          "evenly, or the slots; `auto`: what is fastest of these when it is tried ([one array on several "
          "devices](devices.md#one-array-on-several-devices)). `stages`: the layers of the model, where it is "
          "too large for one part ([stages of a pipeline](devices.md#stages-of-a-pipeline))."};
  for (const auto& [name, which] : kDivides) divide.choices.emplace_back(name);
  return {
      {.path = "array.width",
       .type = KeyType::kOther,
       .fallback = "auto",
       .least = 1,
       .most = 4096,
       .wanted = "auto or an integer from 1 to 4096",
       .sentence =
           "Trials trained side by side. `auto`: on a GPU as many as fit into memory, up to 256; on a CPU 32, or "
           "[two for each thread](search.md#how-many-side-by-side) where trials follow from one another's results."},
      {.path = "array.device",
       .type = KeyType::kOther,
       .fallback = "auto",
       .wanted = "auto, cpu, cpu:N, cpu:N+cpu:N, cuda, cuda:N, all, or a list of devices",
       .sentence =
           "Where arrays run: `[cuda:0, cuda:1]` trains on both. `cpu:3` is three threads of the CPU; several `cpu` "
           "divide the other threads. `cpu:1+cpu:1` is one device of two equal parts, which train each array together "
           "([one array on several devices](devices.md#one-array-on-several-devices))."},
      {.path = "array.threads",
       .type = KeyType::kOther,
       .fallback = "auto",
       .least = 1,
       .most = 4096,
       .wanted = "auto or an integer from 1 to 4096",
       .sentence = "CPU threads of an array. `auto`: one for each core, or for each that a container's share of CPU "
                   "time pays for."},
      {.path = "array.cache",
       .type = KeyType::kOther,
       .fallback = "auto",
       .least = 0,
       .wanted = "auto, off or bytes (2GiB)",
       .sentence = "Memory for what frozen layers make of samples, for all arrays: each sample goes through them once. "
                   "`auto`: a quarter of the machine's. The results' bits do not depend on it."},
      {.path = "array.refill",
       .type = KeyType::kFlag,
       .fallback = "true",
       .sentence = "Whether a slot that falls empty is filled at once; `false`: when the whole array is, to compare."},
      std::move(divide),
      {.path = "array.lend",
       .type = KeyType::kFlag,
       .fallback = "true",
       .sentence = "Whether devices of the CPU that have nothing to do lend their threads to arrays that still train "
                   "([late rungs](devices.md#late-rungs)); `false`: to compare."},
  };
}

std::vector<Key> memory_keys() {
  Key policy = {
      .path = "memory.policy",
      .type = KeyType::kChoice,
      .fallback = name_of(fusion::MemoryPolicy::kAuto),
      .sentence =
          "What becomes of values that the backward pass reads. `keep`: they stay in memory. `recompute`: some "
          "are computed again, to the same bits, which needs less memory and more time; on a CPU. `auto`: "
          "`keep` where that fits the limit, else the fastest of what fits, measured. `compress`: inputs of layers lie "
          "encoded within bounds, so that gradients are off by `sigma`; on a CPU, in float32. It is never `auto`'s "
          "choice, and may not be changed, nor chosen, while a study runs."};
  for (const auto& [name, which] : fusion::kMemoryPolicies) policy.choices.emplace_back(name);
  return {{.path = "memory.limit",
           .type = KeyType::kOther,
           .fallback = "auto",
           .least = 1,
           .wanted = "auto or bytes (8GiB)",
           .sentence = "Bytes of a device that weights, optimizer states, activations and kept features may take: MiB, "
                       "GiB, MB, GB, ... Arrays are as wide as fits. `auto`: half of the device's memory, or of what a "
                       "container's limit leaves."},
          std::move(policy),
          {.path = "memory.sigma",
           .fallback = "0.01",
           .least = 0,
           .most = 1,
           .above = true,
           .sentence = "Of `compress`: the standard deviation of the error that it makes in a layer's gradient, as a "
                       "share of the mean absolute value of that gradient."},
          {.path = "memory.interval",
           .type = KeyType::kInteger,
           .fallback = "1000",
           .least = 1,
           .most = kMostCount,
           .sentence = "Of `compress`: steps after which a trial's bounds are found anew, at most; it is half as many "
                       "whenever one has moved more than twofold."}};
}

}  // namespace hfta::engine::configuration
