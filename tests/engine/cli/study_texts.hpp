#pragma once
/// Configs for tests of the command line. Their trainers are fakes.

#include <string>

namespace hfta::testing {

/// Hyperband 1..9, eta 3, one pass (17 trials), over lr and hidden, which changes shapes.
inline const std::string kHyperband = R"(study: digits
storage: digits.db
seed: 1
method: hyperband
hyperband: {min_epochs: 1, max_epochs: 9, eta: 3}
run_cap: 17
metric: {name: val_accuracy, goal: maximize}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}
  hidden: {values: [64, 128]}
model:
  layers:
    - flatten
    - {linear: [64, "${hidden}"]}
    - relu
    - {linear: ["${hidden}", 10]}
data: {name: digits, batch_size: 64, validation: 0.2, test: 0.2}
train:
  epochs: 9
  loss: cross_entropy
  optimizer: {name: sgd, lr: "${lr}"}
array: {width: 4}
)";

/// `text` with `from` replaced by `to`.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace hfta::testing
