#include "engine/config/key_tables.hpp"
#include "fusion/dataset.hpp"

namespace hfta::engine::configuration {

std::vector<Key> model_keys() {
  const Searched shape = Searched::kShape;
  return {
      {.path = "model.layers",
       .type = KeyType::kOther,
       .fallback = "none",
       .only = {"layers"},
       .searched = shape,
       .wanted = "a list of layers",
       .sentence = "One layer after the other: `relu`, `{linear: [64, 10]}`, `{conv2d: {in_channels: 1, ...}, name: "
                   "stem}`. Kinds, arguments and defaults are torch.nn's, in snake case; `{add: stem}` and `{concat: "
                   "stem}` join an earlier output. Dropout's `p` is searched without splitting arrays. Either this or "
                   "`file`."},
      {.path = "model.file",
       .type = KeyType::kWord,
       .fallback = "none",
       .only = {"file"},
       .searched = shape,
       .sentence = "A model that `torch.export` wrote (.pt2), see [models.md](models.md). Relative to the config's "
                   "folder."},
      {.path = "model.evaluation",
       .type = KeyType::kWord,
       .fallback = "none",
       .only = {"file"},
       .searched = shape,
       .sentence = "Another export of the module, of `model.eval()`: what validation and test run (.pt2). "
                   "`training_graph`: the training graph is meant, with dropout off, batch norm by its running "
                   "statistics and random tensors at their mean. Needed where the training graph does not say what "
                   "evaluation computes, see [models.md](models.md#evaluation)."},
      {.path = "model.freeze",
       .type = KeyType::kOther,
       .fallback = "none",
       .only = {"file"},
       .searched = shape,
       .wanted = "a name or a list of names",
       .sentence = "Parameters that are not trained, by their names in the model; `*` matches anything: "
                   "`backbone.*`."},
      {.path = "model.bind",
       .type = KeyType::kOther,
       .fallback = "none",
       .only = {"file"},
       .searched = Searched::kPerSlot,
       .wanted = "a map of names and numbers",
       .sentence = "Numbers of the graph that take another value than the exported one, by module and argument: "
                   "`{head.dropout.p: \"${dropout}\"}`; `*` matches anything."},
      {.path = "model.init",
       .type = KeyType::kOther,
       .fallback = "exported",
       .only = {"file"},
       .searched = shape,
       .wanted = "exported, fresh, or {jitter: a number above 0}",
       .sentence =
           "Whether trials begin with the file's weights (`exported`), with new ones that the trial's seed draws "
           "from the distributions that the file's were drawn from (`fresh`), or near the file's: `{jitter: "
           "0.01}` moves each by normal numbers of 0.01 times its tensor's standard deviation."},
  };
}

std::vector<Key> data_keys() {
  const Searched shape = Searched::kShape;
  return {
      {.path = "data.name",
       .type = KeyType::kChoice,
       .fallback = "none",
       .choices = fusion::builtin_data(),
       .only = {"built-in"},
       .searched = shape,
       .sentence = "A built-in set of data. Either this or `train`."},
      {.path = "data.train",
       .type = KeyType::kWord,
       .fallback = "none",
       .only = {"arrays", "table", "tokens"},
       .searched = shape,
       .sentence =
           "Training data: arrays by name (.npz, .safetensors, a folder of .npy files; CIFAR's binary files or their "
           "folder, with arrays `x` and `y`), the one array of inputs (.npy, or MNIST's IDX, also with .gz), a table "
           "(.csv, .tsv, .csv.gz, .tsv.gz), or raw tokens (.bin). Relative to the config's folder."},
      {.path = "data.validation",
       .type = KeyType::kOther,
       .fallback = "none",
       .least = 0,
       .most = 1,
       .above = true,
       .below = true,
       .searched = shape,
       .wanted = "a fraction between 0 and 1, or a file",
       .sentence = "Part of the training data, split off by the study's seed (of raw tokens: the tail), or a file like "
                   "it."},
      {.path = "data.test",
       .type = KeyType::kOther,
       .fallback = "none",
       .least = 0,
       .most = 1,
       .above = true,
       .below = true,
       .searched = shape,
       .wanted = "a fraction between 0 and 1, or a file",
       .sentence = "Likewise; evaluated once, for the best trial, when the study ends."},
      {.path = "data.x",
       .type = KeyType::kOther,
       .fallback = "x",
       .only = {"arrays"},
       .searched = shape,
       .wanted = "a name or a list of names",
       .sentence = "Names of the arrays of inputs; not beside a single file of inputs."},
      {.path = "data.y",
       .type = KeyType::kWord,
       .fallback = "y",
       .only = {"arrays"},
       .searched = shape,
       .sentence = "Name of the array of targets; beside a single file of inputs, the file of the targets (required). "
                   "None with a loss of the model, whose labels are inputs."},
      {.path = "data.target",
       .type = KeyType::kWord,
       .only = {"table"},
       .searched = shape,
       .sentence = "Column of the targets; none with a loss of the model."},
      {.path = "data.features",
       .type = KeyType::kOther,
       .fallback = "all but the target",
       .only = {"table"},
       .searched = shape,
       .wanted = "a name or a list of names",
       .sentence = "Columns of the inputs."},
      {.path = "data.window",
       .type = KeyType::kInteger,
       .fallback = "none",
       .least = 1,
       .most = kMostCount,
       .only = {"tokens"},
       .searched = shape,
       .sentence = "Tokens of a sample: `x` are tokens i to i + window, `y` those one behind. Required."},
      {.path = "data.stride",
       .type = KeyType::kInteger,
       .fallback = "the window",
       .least = 1,
       .most = kMostCount,
       .only = {"tokens"},
       .searched = shape,
       .sentence = "Tokens from one sample's first to the next one's."},
      {.path = "data.dtype",
       .type = KeyType::kChoice,
       .fallback = fusion::token_types().front(),
       .choices = fusion::token_types(),
       .only = {"tokens"},
       .searched = shape,
       .sentence = "Type of the tokens in the file, little-endian."},
      {.path = "data.batch_size",
       .type = KeyType::kInteger,
       .least = 1,
       .most = kMostCount,
       .searched = shape,
       .sentence = "Samples per training step."},
      {.path = "data.shuffle",
       .type = KeyType::kOther,
       .fallback = "true",
       .searched = shape,
       .wanted = "true, false or once",
       .sentence =
           "Whether an epoch has an order of its own; `once`: all have the first epoch's; `false`: the file's."},
      {.path = "data.order",
       .type = KeyType::kChoice,
       .fallback = "shared",
       .choices = {"shared", "per_trial"},
       .searched = shape,
       .sentence = "Whether trials see the samples of an epoch in the same order."},
      {.path = "data.drop_last",
       .type = KeyType::kFlag,
       .fallback = "false",
       .searched = shape,
       .sentence = "Whether a last batch that is short is left out."},
  };
}

std::vector<Key> train_keys() {
  const Searched shape = Searched::kShape;
  return {
      {.path = "train.epochs",
       .type = KeyType::kInteger,
       .fallback = "hyperband.max_epochs",
       .least = 1,
       .most = 1e6,
       .sentence =
           "Epochs of a whole training, which schedules are laid out for. Required unless `method: hyperband`."},
      {.path = "train.loss",
       .type = KeyType::kSection,
       .searched = shape,
       .sentence = "A word, or a map of the keys below."},
      {.path = "train.optimizer",
       .type = KeyType::kSection,
       .searched = shape,
       .sentence = "A word, or a map of the keys below."},
      {.path = "train.schedule",
       .type = KeyType::kSection,
       .fallback = "constant",
       .searched = Searched::kPerSlot,
       .sentence = "A word, or a map of the keys below."},
      {.path = "train.clip_norm",
       .fallback = "none",
       .least = 0,
       .above = true,
       .searched = Searched::kPerSlot,
       .sentence = "Largest norm of a trial's whole gradient; larger ones are scaled down to it."},
      {.path = "train.accumulate",
       .type = KeyType::kInteger,
       .fallback = "none",
       .least = 1,
       .most = kMostCount,
       .searched = Searched::kPerSlot,
       .sentence =
           "Batches per optimizer step: their gradients are added up, each by its batch's weight, so that a step "
           "is by a batch of `batch_size` times that many samples, in the memory of one. What is left at an "
           "epoch's end makes a step of its own. Costs the memory of one more copy of the trained parameters."},
      {.path = "train.dtype",
       .type = KeyType::kChoice,
       .fallback = "float32",
       .choices = {"float32", "float64"},
       .searched = shape,
       .sentence = "Number type of weights and inputs."},
      {.path = "train.precision",
       .type = KeyType::kChoice,
       .fallback = "float32",
       .choices = {"float32", "tf32", "bfloat16"},
       .sentence = "How precisely a float32 model is computed; its weights, optimizer state, loss and metrics stay "
                   "float32. `bfloat16`: the forward as under torch.autocast; no loss scaling is needed. `tf32`: "
                   "products and convolutions on a GPU; on a CPU the same as `float32`."},
      {.path = "train.seed",
       .type = KeyType::kInteger,
       .fallback = "the trial's number",
       .least = 0,
       .most = kMostInteger,
       .searched = Searched::kPerSlot,
       .sentence = "Seed of a trial's weights, dropout and `order: per_trial`."},
      {.path = "train.metrics",
       .type = KeyType::kOther,
       .fallback = "accuracy of classes; mse, mae and r2 of values",
       .searched = shape,
       .wanted = "a list of metrics, or a map of names and formulas",
       .sentence =
           "Beside the loss: words, or maps with options, of [this table](metrics.md). With a loss of the model: "
           "`{accuracy: \"hits / tokens\"}`, [arithmetic over sums of outputs](metrics.md#formulas)."},
  };
}

}  // namespace hfta::engine::configuration
