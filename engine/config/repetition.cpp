#include "engine/config/repetition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "engine/config/key_tables.hpp"
#include "search/repetition.hpp"

namespace hfta::engine::configuration {
namespace {

// The index that a trial's parameter has; 0 if the trial has no such parameter.
std::int64_t index_in(const trials::Params& params, const char* name) {
  const auto found = std::find_if(params.begin(), params.end(), [&](const auto& param) { return param.first == name; });
  if (found == params.end()) return 0;
  const auto* index = std::get_if<std::int64_t>(&found->second);
  return index != nullptr ? *index : 0;
}

// The key that asks for them, for messages.
const char* key_of(const trials::Repetitions& repetitions) { return repetitions.seeds > 1 ? "repeat" : "folds"; }

void check_names(Reader& root, const std::string& file, const StudyConfig& config) {
  const Node& parameters = *root.find("parameters");
  for (const trials::Parameter& axis : config.repetitions.axes()) {
    if (parameters.find(axis.name) == nullptr) continue;
    fail_at(file, *parameters.find(axis.name), join_path("parameters", axis.name),
            fmt::format("found it beside {}, which gives every trial a parameter of that name; wanted another name",
                        axis.name == trials::kRepeat ? "repeat" : "folds"));
  }
}

// Checks rules: one that compares repetitions must be the only one, and one that completes trials does not go with
// repetitions, since those of a configuration wait for each other.
void check_rules(const Reader& root, const StudyConfig& config) {
  const trials::Repetitions& repetitions = config.repetitions;
  for (const search::Stopping& stopping : config.early_stopping) {
    const search::StoppingRule& rule = search::stopping_rule(stopping.rule);
    if (rule.completes && repetitions.any()) {
      root.fail("early_stopping",
                fmt::format("found {} beside {}, wanted rules that stop trials: it completes them one "
                            "by one",
                            stopping.rule, key_of(repetitions)));
    }
    if (rule.compare == nullptr) continue;
    if (config.early_stopping.size() > 1) {
      root.fail("early_stopping",
                fmt::format("found {} among {} rules, wanted it alone", stopping.rule, config.early_stopping.size()));
    }
    const int fewest = search::fewest_for_racing(stopping.options.confidence);
    if (repetitions.count() >= fewest) continue;
    root.fail(
        "early_stopping",
        fmt::format("found {} with {} of a configuration, wanted at least {} (repeat, folds): fewer pairs are "
                    "never worse with a confidence of {} %",
                    stopping.rule, repetitions.any() ? fmt::format("{} trials", repetitions.count()) : "one trial",
                    fewest, stopping.options.confidence));
  }
}

}  // namespace

FoldKeys read_repetitions(Reader& root, const std::string& file, StudyConfig& config) {
  trials::Repetitions& repetitions = config.repetitions;
  repetitions.seeds = static_cast<int>(root.integer("repeat"));
  repetitions.rank = trials::rank_from(root.word("rank"));
  Reader section = root.section("folds");
  repetitions.folds = static_cast<int>(section.integer("count"));
  FoldKeys keys;
  keys.stratified = section.flag("stratified");
  keys.groups = section.optional_word("groups").value_or("");
  if (repetitions.folds == 1 && (keys.stratified || !keys.groups.empty())) {
    section.fail("count", "found no folds, wanted at least 2 beside stratified or groups");
  }
  if (!repetitions.any() && repetitions.rank != trials::Rank::kMean) {
    root.fail("rank", fmt::format("found {} without repetitions, wanted repeat or folds beside it",
                                  trials::name_of(repetitions.rank)));
  }
  check_names(root, file, config);
  return keys;
}

void check_repetitions(const Reader& root, const StudyConfig& config) {
  const trials::Repetitions& repetitions = config.repetitions;
  check_rules(root, config);
  if (!repetitions.any()) return;
  if (search::method(config.method).copies_trials) {
    root.fail(key_of(repetitions),
              fmt::format("found {} beside method: {}, whose trials go on from copies of others; wanted another method",
                          repetitions.count(), config.method));
  }
  if (config.run_cap && root.has("run_cap") &&
      static_cast<double>(*config.run_cap) * repetitions.count() > kMostCount) {
    root.fail("run_cap", fmt::format("found {} configurations of {} trials, wanted at most {:.0f} trials",
                                     *config.run_cap, repetitions.count(), kMostCount));
  }
}

void add_axes(const FoldKeys& folds, StudyConfig& config) {
  for (trials::Parameter& axis : config.repetitions.axes()) config.space.push_back(std::move(axis));
  const bool equal = fusion::has_equal_parts({config.repetitions.folds, 0, folds.stratified, folds.groups});
  if (config.repetitions.folds > 1 && !equal) config.shape_changing.insert(trials::kFold);
}

void repeat_task(const TaskText& text, const trials::Params& params, const Reader& data, TaskSpec& task) {
  if (!text.repetitions.any()) return;
  task.seed = task.seed.value_or(0) + static_cast<std::uint64_t>(index_in(params, trials::kRepeat));
  if (text.repetitions.folds == 1) return;
  if (task.data.validation || !task.data.validation_file.empty()) {
    data.fail("validation", "found it beside folds, each of which validates on a part of the training data");
  }
  task.data.folds = {text.repetitions.folds, static_cast<int>(index_in(params, trials::kFold)), text.folds.stratified,
                     text.folds.groups};
}

}  // namespace hfta::engine::configuration
