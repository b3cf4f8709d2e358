#include "engine/driver/draws/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "search/repetition.hpp"

namespace hfta::engine {
namespace {

// The epochs of a trial that is not stopped: all of the task's.
int full_epochs(const StudyConfig& config, search::Sampler& sampler) {
  const std::vector<trials::Params> first = sampler.ask(0, 1, {});
  return config.task(config.repetitions.params_of(first.empty() ? trials::Params{} : first.front(), 0)).recipe.epochs;
}

// A target of the study completes the trial that reaches it; repetitions end together.
std::vector<search::Stopping> rules_of(const StudyConfig& config) {
  std::vector<search::Stopping> rules = config.early_stopping;
  if (config.target && !config.repetitions.any()) rules.push_back({"target", {.value = *config.target}});
  return rules;
}

std::unique_ptr<search::Scheduler> make_stopping(const StudyConfig& config, search::Sampler& sampler,
                                                 std::vector<int> run_caps) {
  if (const auto size = sampler.size()) {  // a grid has an end of its own
    const auto end = static_cast<int>(std::min<std::int64_t>(*size, std::numeric_limits<int>::max()));
    if (run_caps.empty()) run_caps.push_back(end);
    for (int& cap : run_caps) cap = std::min(cap, end);
    run_caps.erase(std::unique(run_caps.begin(), run_caps.end()), run_caps.end());
  }
  return search::make_stopping(rules_of(config), full_epochs(config, sampler), config.objectives.front().goal,
                               run_caps);
}

// The rule that compares repetitions, which must be the only rule; null: there is none.
const search::StoppingRule* comparing_rule(const StudyConfig& config) {
  if (config.early_stopping.empty()) return nullptr;
  const search::StoppingRule& rule = search::stopping_rule(config.early_stopping.front().rule);
  return rule.compare != nullptr ? &rule : nullptr;
}

// Whether some trials end before their last epoch, though they have not failed.
bool stops_trials(const StudyConfig& config) {
  return search::method(config.method).scheduler != nullptr || !config.early_stopping.empty();
}

// Rules and methods see configurations by their value, except for a rule that compares repetitions.
std::unique_ptr<search::Scheduler> make_scheduler(const StudyConfig& config, const search::SearchTask& task,
                                                  search::Sampler& sampler, const std::vector<int>& run_caps) {
  if (const search::StoppingRule* rule = comparing_rule(config)) {
    search::StoppingOptions options = config.early_stopping.front().options;
    options.max_epochs = full_epochs(config, sampler);
    return rule->compare(options, config.repetitions, config.objectives.front().goal);
  }
  const search::Method& method = search::method(config.method);
  std::unique_ptr<search::Scheduler> judge =
      method.scheduler != nullptr
          ? search::make_stopping_beside(method.scheduler(config.method_options, task, run_caps), rules_of(config),
                                         config.objectives.front().goal)
          : make_stopping(config, sampler, run_caps);
  // Where nobody is stopped, repetitions need not wait for each other.
  if (!config.repetitions.any() || !stops_trials(config)) return judge;
  return search::make_repeated(std::move(judge), config.repetitions, config.objectives.front().goal);
}

// The number of trials of so many configurations; kEndless stays kEndless.
std::optional<std::int64_t> times(std::optional<std::int64_t> configurations, int count) {
  if (!configurations || *configurations == kEndless) return configurations;
  return *configurations > std::numeric_limits<int>::max() ? *configurations : *configurations * count;
}

void lower(std::optional<int>& cap, std::optional<std::int64_t> limit) {
  if (!limit) return;
  const auto most = static_cast<int>(std::min<std::int64_t>(*limit, std::numeric_limits<int>::max()));
  cap = cap ? std::min(*cap, most) : most;
}

}  // namespace

std::optional<int> Strategy::trials(int enqueued) const {
  std::optional<int> all = cap;
  if (const auto size = sampler->size()) lower(all, times(*size + enqueued, repetitions.count()));
  return all;
}

void telling_file(const StudyConfig& config, const std::function<void()>& work) {
  const std::string file = printable(config.file.string());
  try {
    work();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(file)) throw;
    throw Error(error.kind(), fmt::format("{}: {}", file, error.what()));
  }
}

Strategy make_strategy(const StudyConfig& config, const std::vector<int>& run_caps, const search::History& prior,
                       std::function<int()> slots) {
  Strategy strategy;
  const search::Method& method = search::method(config.method);
  const trials::Space searched = config.searched();
  std::set<std::string> fixed = config.shape_changing;
  fixed.insert(config.padded.begin(), config.padded.end());
  std::vector<trials::Goal> goals;
  for (const trials::Objective& objective : config.objectives) goals.push_back(objective.goal);
  if (slots && config.repetitions.any()) {
    slots = [trials = std::move(slots), each = config.repetitions.count()] { return trials() / each; };
  }
  const search::SearchTask task{searched,           goals.front(), config.seed, fixed,
                                config.constraints, config.points, prior,       config.shape_changing,
                                std::move(slots),   goals};
  strategy.repetitions = config.repetitions;
  strategy.stops_trials = stops_trials(config);
  telling_file(config, [&] {
    strategy.sampler = search::make_sampler(method, config.method_options, task);
    strategy.scheduler = make_scheduler(config, task, *strategy.sampler, run_caps);
  });
  if (!run_caps.empty()) lower(strategy.cap, times(run_caps.back(), config.repetitions.count()));
  lower(strategy.cap, strategy.scheduler->capacity());
  return strategy;
}

std::vector<int> next_caps(const std::vector<int>& stored, const StudyConfig& config) {
  std::vector<int> caps = stored;
  // A cap that the study has had is no edit: --trials, or an edit, raised it since.
  if (!config.run_cap || std::find(caps.begin(), caps.end(), *config.run_cap) != caps.end()) return caps;
  // Where only the budget ended the study, any cap is new; TrialTable::restore() sees whether trials have passed it.
  if (!caps.empty() && caps.back() == kEndless) caps.pop_back();
  if (!caps.empty() && *config.run_cap < caps.back()) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: run_cap: found {}, wanted at least {}, as study '{}' has; "
                                                "--fresh starts a new one beside it",
                                                config.file.string(), *config.run_cap, caps.back(), config.study));
  }
  if (caps.empty() || *config.run_cap > caps.back()) caps.push_back(*config.run_cap);
  return caps;
}

void check_draws(const StudyConfig& config, const search::History& prior) {
  if (config.constraints.empty()) return;
  // Points come before what the sampler draws.
  const int draws = std::min(static_cast<int>(config.points.size()) + 1, config.run_cap.value_or(kEndless));
  const Strategy strategy = make_strategy(config, next_caps({}, config), prior);
  telling_file(config, [&] { (void)strategy.sampler->ask(0, draws, prior); });
}

}  // namespace hfta::engine
