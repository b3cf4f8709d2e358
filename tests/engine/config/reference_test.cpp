#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "engine/config/keys.hpp"
#include "sample.hpp"
#include "tests/source_folder.hpp"

namespace hfta::engine {
namespace {

namespace fs = std::filesystem;
using configuration::all_keys;
using configuration::Key;

std::string contents(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// `config_test "[.print]"` prints what belongs there.
TEST_CASE("print the tables of docs/config.md", "[.print]") { std::cout << configuration::key_reference(); }

TEST_CASE("docs/config.md has the tables of the keys") {
  const std::string page = contents(hfta::testing::source_folder() / "docs/config.md");
  CHECK(page.find(configuration::key_reference()) != std::string::npos);
}

TEST_CASE("keys that have one row together repeat those of another section, and have one default") {
  const Key* first = nullptr;
  for (const Key& key : all_keys()) {
    if (key.repeats.empty()) continue;
    INFO(key.path);
    if (first == nullptr) first = &key;
    CHECK(key.repeats == first->repeats);
    CHECK(key.fallback == first->fallback);
    CHECK(key.searched == first->searched);
    const Key* there = configuration::find_key(key.repeats + key.path.substr(key.path.rfind('.')));
    REQUIRE(there != nullptr);
    CHECK(wanted_text(key) == wanted_text(*there));
    CHECK(key.only == there->only);
    CHECK(key.searched == there->searched);
    CHECK(key.sentence == there->sentence);
  }
  CHECK(first != nullptr);
}

// A config in which the section of `key` is read, with all its keys.
std::string config_for(const Key& key) {
  std::vector<Change> changes;
  if (key.path.starts_with("hyperband")) changes.push_back({"method: random", "method: hyperband"});
  const std::string only = key.only.empty() ? "" : key.only.front();
  if (key.path.starts_with("early_stopping.") && !only.empty()) {
    const std::string repeated = only == "racing" ? "\nrepeat: 5" : "";  // it compares the repetitions
    changes.push_back({"method: random", "method: random\nearly_stopping: " + only + repeated});
  }
  if (key.path.starts_with("dehb")) changes.push_back({"method: random", "method: dehb"});
  if (key.path.starts_with("freeze_thaw")) changes.push_back({"method: random", "method: freeze_thaw"});
  if (key.path.starts_with("bohb")) changes.push_back({"method: random", "method: bohb"});
  if (key.path.starts_with("early_terminate.")) {
    changes.push_back({"method: random", "method: random\nearly_terminate: {type: hyperband, min_iter: 1}"});
  }
  if (key.path.starts_with("train.phases.")) {
    const std::string kind = only.empty() ? "adamw" : only;
    const std::string phases = "phases: [{loss: d, params: a, optimizer: {name: " + kind + ", groups: [{params: b}]}}]";
    return changed({{"val_accuracy", "val_loss"},
                    {"loss: cross_entropy", phases},
                    {"  optimizer: {name: adamw, lr: \"${lr}\"}\n", "  seed: \"${lr}\"\n"},
                    {"{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}", "{values: [1, 2]}"}},
                   kExported);
  }
  const bool of_adamw = only.empty() || std::find(key.only.begin(), key.only.end(), "adamw") != key.only.end();
  if (key.path.starts_with("train.optimizer.") && !of_adamw) changes.push_back({"name: adamw", "name: " + only});
  if (key.path.starts_with("train.optimizer.groups.")) {
    changes.push_back({"lr: \"${lr}\"}", "lr: \"${lr}\", groups: [{params: \"*.bias\"}]}"});
  }
  if (key.path.starts_with("train.schedule.") && !only.empty()) changes.push_back({"name: cosine", "name: " + only});
  if (key.path.starts_with("model.adapters")) {
    return changed({{"  file: m.pt2\n", "  file: m.pt2\n  adapters: {lora: {targets: all-linear}}\n"}}, kExported);
  }
  if (only == "file" || key.path == "train.loss.output") return kExported;
  const Change by_loss = {"val_accuracy", "val_loss"};
  if (only == "model") return changed({by_loss, {"loss: cross_entropy", "loss: {output: loss}"}}, kExported);
  if (key.path.starts_with("train.loss.") && !only.empty()) {
    changes.insert(changes.end(), {by_loss, {"loss: cross_entropy", "loss: " + only}});
  }
  if (only == "arrays") changes.push_back({"name: digits", "train: a.npz"});
  if (only == "tokens") changes.push_back({"name: digits", "train: a.bin, window: 8"});
  if (only == "table") changes.push_back({"name: digits", "train: a.csv, target: y"});
  if (key.path.starts_with("parameters.*.") && !only.empty()) {
    std::string lr = "{distribution: " + only + ", min: 1, max: 2}";
    if (only == "constant") lr = "{value: 1}";
    if (only == "categorical") lr = "{values: [1, 2]}";
    if (only == "normal") lr = "{distribution: normal, mu: 9}";
    changes.push_back({"{distribution: log_uniform_values, min: 1.0e-4, max: 1.0}", lr});
  }
  return changed(changes);
}

TEST_CASE("every key of the table is read") {
  for (const Key& key : all_keys()) {
    std::string path = key.path;
    if (path.ends_with("optimizer.groups") || path == "train.phases" || path == "early_stopping" || path == "metric")
      continue;  // take maps within a list
    for (std::size_t star = path.find('*'); star != std::string::npos; star = path.find('*')) {
      path.replace(star, 1, path.starts_with("parameters") ? "lr" : "0");
    }
    std::string text = config_for(key);
    if (path == "data.train") path = "data", text = kSample;
    INFO(path);
    // No other key takes a map within a list; one that nobody reads would not mind it.
    const std::string message = message_of(text, {{path, "[{a: b}]"}});
    CHECK(message.find("--set " + path + ": ") == 0);
    CHECK(message.find("unknown key") == std::string::npos);
  }
}

TEST_CASE("defaults of the table are what is read without the key") {
  for (const Key& key : all_keys()) {
    if (!key.fallback || key.path.starts_with("parameters") || key.type == configuration::KeyType::kSection) continue;
    const std::string fallback = *key.fallback;
    const bool in_words = fallback.find(' ') != std::string::npos || fallback.find('<') != std::string::npos ||
                          fallback == "none" || fallback == "train.epochs" || fallback == "hyperband.max_epochs";
    if (in_words || key.path.starts_with("array") || key.path == "data.x" || key.path == "data.y") continue;
    const std::string text = config_for(key);
    const std::string wanted = text.find("  " + key.path) == std::string::npos ? fallback : "";
    INFO(key.path << " = " << fallback);
    if (key.path == "seed" || key.path == "method" || key.path == "metric.goal" || key.path == "train.schedule.name" ||
        key.path.ends_with("optimizer.betas") || key.path == "train.optimizer.lr") {
      continue;  // the sample sets it
    }
    std::string path = key.path;
    if (const std::size_t star = path.find('*'); star != std::string::npos) path.replace(star, 1, "0");
    CHECK(parsed(text, {{path, wanted}}).normalized == parsed(text).normalized);
  }
}

TEST_CASE("the configs that come with the product are valid, without warnings") {
  int count = 0;
  for (const char* folder : {"configs", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(hfta::testing::source_folder() / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      INFO(entry.path());
      CHECK_NOTHROW(load_config(entry.path(), {}));
      CHECK(load_config(entry.path(), {}).warnings.empty());
      ++count;
    }
  }
  CHECK(count >= 5);
}

}  // namespace
}  // namespace hfta::engine
