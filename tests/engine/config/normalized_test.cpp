#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/config/check.hpp"
#include "sample.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;

const std::string kOptimizer = R"({name: adamw, lr: "${lr}"})";

std::vector<std::string> differences(const std::vector<Change>& changes, const std::vector<Override>& overrides = {}) {
  return config_differences(parsed(kSample).normalized, parsed(changed(changes), overrides).normalized);
}

TEST_CASE("what decides nothing makes no difference") {
  for (const std::vector<Change>& changes : std::vector<std::vector<Change>>{
           {},
           {{"seed: 1", "# a comment\nseed: 0x1"}},
           {{"run_cap: 8", "run_cap: 80"}},
           {{"{width: 4}", "{width: 16, device: cpu, threads: 2}"}},
           {{"array: {width: 4}\n", ""}},
           {{"array: {width: 4}\n", "memory: {limit: 8GiB, policy: recompute}\n"}},
           {{"storage: sample.db", "storage: sqlite:///sample.db"}},
           {{"loss: cross_entropy", "loss: {name: cross_entropy, label_smoothing: 0}"}},
           {{"{name: cosine}", "cosine"}},
           {{kOptimizer, "{lr: ${lr}, name: 'adamw', weight_decay: 1e-2, betas: [0.9, 0.999]}"},
            {"lr: ${lr}", "lr: \"${lr}\""}},
           {{"  epochs: 4", "  dtype: float32\n  epochs: 4\n  metrics: [accuracy]"}},
           {{"batch_size: 64", "shuffle: true, drop_last: false, batch_size: 64"}},
           {{"  epochs: 4", "  precision: float32\n  epochs: 4"}},
           {{"max: 1.0}", "max: 1}"}},
           {{"method: random", "method: random\nhyperband: {eta: 4}"}},
           {{"method: random", "method: random\nearly_stopping: none"}},
           {{"method: random", "method: random\nearly_stopping: []"}},
           {{"method: random", "method: random\nearly_stopping: [none]"}},
       }) {
    CHECK(differences(changes) == std::vector<std::string>{});
  }
}

TEST_CASE("bytes are read with and without a unit") {
  const auto memory = [](const std::string& limit) {
    return parsed(changed({{"array: {width: 4}", "memory: {limit: " + limit + ", policy: keep}"}})).memory;
  };
  CHECK(memory("8GiB").limit == std::int64_t{8} << 30);
  CHECK(memory("1.5 gb").limit == 1500000000);
  CHECK(memory("1000").limit == 1000);
  CHECK_FALSE(memory("auto").limit);
  CHECK(memory("auto").policy == fusion::MemoryPolicy::kKeep);
  CHECK(memory("auto").given);
  const StudyConfig plain = parsed(kSample);
  CHECK_FALSE((plain.memory.limit || plain.memory.given));
  CHECK(plain.memory.policy == fusion::MemoryPolicy::kAuto);
  CHECK(parsed(changed({{"{width: 4}", "{cache: 2GiB}"}})).cache == std::int64_t{2} << 30);
  CHECK(parsed(changed({{"{width: 4}", "{cache: off}"}})).cache == 0);
}

TEST_CASE("differences are told by key path") {
  struct Case {
    std::vector<Change> changes;
    std::vector<std::string> lines;
  };
  const std::vector<Case> cases = {
      {{{"seed: 1", "seed: 2"}}, {"seed: found 2, the study has 1"}},
      {{{"name: adamw", "name: adam"}},
       {"train.optimizer.name: found adam, the study has adamw",
        "train.optimizer.weight_decay: found 0.0, the study has 0.01"}},
      {{{"lr: \"${lr}\"", "lr: 0.1"}}, {"train.optimizer.lr: found 0.1, the study has ${lr}"}},
      {{{"max: 0.7", "max: 0.8"}}, {"parameters.drop.max: found 0.8, the study has 0.7"}},
      {{{"- relu", "- tanh"}}, {"model.layers.3.kind: found tanh, the study has relu"}},
      {{{"validation: 0.2", "validation: 0.3"}}, {"data.validation: found 0.3, the study has 0.2"}},
      {{{"goal: maximize", "goal: maximize, select: best"}}, {"metric.select: found best, the study has last"}},
      {{{"  epochs: 4", "  epochs: 5\n  clip_norm: 1"}},
       {"train.clip_norm: found 1.0, the study has nothing", "train.epochs: found 5, the study has 4"}},
      {{{"run_cap: 8", "run_cap: 8\nearly_stopping: [{name: threshold, upper: 3}, median]"}},
       {"early_stopping.0.min_epochs: found 1, the study has nothing",
        "early_stopping.0.name: found threshold, the study has nothing",
        "early_stopping.0.upper: found 3.0, the study has nothing",
        "early_stopping.1.min_epochs: found 1, the study has nothing",
        "early_stopping.1.min_trials: found 5, the study has nothing",
        "early_stopping.1.name: found median, the study has nothing"}},
      {{{"array: {width: 4}", "memory: {policy: compress, limit: 8GiB}"}},
       {"memory.interval: found 1000, the study has nothing", "memory.policy: found compress, the study has nothing",
        "memory.sigma: found 0.01, the study has nothing"}},
      {{{"  epochs: 4", "  precision: bfloat16\n  epochs: 4"}},
       {"train.precision: found bfloat16, the study has nothing"}},
  };
  for (const Case& c : cases) CHECK(differences(c.changes) == c.lines);
  CHECK(differences({}, {{"train.epochs", "3"}}) == std::vector<std::string>{"train.epochs: found 3, the study has 4"});
  CHECK_THROWS_AS(config_differences("{", "{}"), Error);
  // A study that was begun before there was a choice of precision still is what it was.
  CHECK(parsed(kSample).normalized.find("precision") == std::string::npos);
  const std::string asha = parsed(changed({{"run_cap: 8", "run_cap: 8\nearly_stopping: asha"}})).normalized;
  CHECK(asha.find("promote") == std::string::npos);
}

TEST_CASE("what is compressed is part of how every trial is trained, and what it may take is not") {
  const auto normalized = [](const std::string& memory) {
    return parsed(changed({{"array: {width: 4}", "memory: " + memory}})).normalized;
  };
  const std::string compressed = normalized("{policy: compress}");
  CHECK(config_differences(normalized("{policy: compress, limit: 1GiB}"), compressed).empty());
  CHECK(config_differences(normalized("{policy: compress, sigma: 0.02, interval: 7}"), compressed) ==
        std::vector<std::string>{"memory.interval: found 1000, the study has 7",
                                 "memory.sigma: found 0.01, the study has 0.02"});
  CHECK(config_differences(compressed, normalized("{policy: keep}")).size() == 3);
  CHECK(normalized("{policy: keep, sigma: 0.5}") == normalized("{policy: auto}"));
  const StudyConfig config = parsed(changed({{"array: {width: 4}", "memory: {policy: compress, sigma: 0.02}"}}));
  const auto compression = config.task(configuration::base_params(config.space)).recipe.compression;
  REQUIRE(compression);
  CHECK(compression->sigma == 0.02);
  CHECK(compression->interval == 1000);
  CHECK_FALSE(parsed(kSample).task(configuration::base_params(parsed(kSample).space)).recipe.compression);
}

TEST_CASE("the order of parameters decides draws") {
  const std::string lr = "  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}\n",
                    drop = "  drop: {min: 0.0, max: 0.7}\n";
  CHECK(differences({{lr + drop, drop + lr}}).size() == 2);
}

TEST_CASE("a stored text means what the file meant") {
  const fs::path file = fs::temp_directory_path() / "hfta_config_test.yaml";
  std::ofstream(file) << kSample;
  const std::vector<Override> overrides = {{"train.epochs", "3"}};
  const StudyConfig loaded = load_config(file, overrides);
  const StudyConfig stored = parse_config(loaded.text, file, overrides);
  fs::remove(file);
  CHECK(loaded.text == kSample);
  CHECK(stored.normalized == loaded.normalized);
  CHECK(nlohmann::json::parse(loaded.normalized).at("train").at("epochs") == 3);
  CHECK(stored.storage == loaded.storage);
  CHECK(stored.study == "sample");
  CHECK(stored.shape_changing == loaded.shape_changing);
}

TEST_CASE("files that cannot be read") {
  const fs::path folder = fs::temp_directory_path();
  const auto message = [](const fs::path& file) {
    try {
      (void)load_config(file, {});
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message(folder / "no_such.yaml") ==
        (folder / "no_such.yaml").string() + ": cannot open: No such file or directory");
  CHECK(message(folder) == folder.string() + ": found a folder, wanted a config file");
  const fs::path file = folder / "hfta_config_test_bad.yaml";
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"", ": found an empty file, wanted a config"},
           {"# only a comment\n", ": found an empty file, wanted a config"},
           {std::string(10, '\0'), ":1: found the control character 0x00, wanted text"},
           {"- a\n", ":1: found a list, wanted a map of study, metric, parameters, model, data, train, ..."},
           {"just words",
            ":1: found 'just words', wanted a map of study, metric, parameters, model, data, train, ..."}}) {
    std::ofstream(file) << text;
    CHECK(message(file) == file.string() + wanted);
  }
  std::ofstream(file) << std::string(std::size_t{2} << 20, '#');
  CHECK(message(file).find("1048576") != std::string::npos);
  fs::remove(file);
}

}  // namespace
}  // namespace hfta::engine
