#include "sample.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace hfta::engine {

const std::string kSample =
    R"(study: sample
storage: sample.db
seed: 1
method: random
run_cap: 8
metric: {name: val_accuracy, goal: maximize}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}
  drop: {min: 0.0, max: 0.7}
  hidden: {values: [32, 64]}
model:
  layers:
    - flatten
    - {linear: [64, "${hidden}"]}
    - {dropout: "${drop}"}
    - relu
    - {linear: ["${hidden}", 10]}
data: {name: digits, batch_size: 64, validation: 0.2, test: 0.2}
train:
  epochs: 4
  loss: cross_entropy
  optimizer: {name: adamw, lr: "${lr}"}
  schedule: {name: cosine}
array: {width: 4}
)";

const std::string kExported = kSample.substr(0, kSample.find("  layers:")) + R"(  file: m.pt2
  freeze: "${hidden}.*"
  bind: {head.drop.p: "${drop}", "block.*.p": 0.5}
)" + kSample.substr(kSample.find("data:"));

std::string changed(const std::vector<Change>& changes, std::string text) {
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    INFO("looking for: " << from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

StudyConfig parsed(const std::string& text, const std::vector<Override>& overrides) {
  return parse_config(text, "s.yaml", overrides);
}

std::string message_of(const std::string& text, const std::vector<Override>& overrides) {
  try {
    (void)parsed(text, overrides);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

}  // namespace hfta::engine
