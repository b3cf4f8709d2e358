#include "engine/driver/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

// A trial that nobody stops trains for all of the task's epochs.
int full_epochs(const StudyConfig& config, search::Sampler& sampler) {
  const std::vector<trials::Params> first = sampler.ask(0, 1, {});
  return config.task(first.empty() ? trials::Params{} : first.front()).recipe.epochs;
}

std::unique_ptr<search::Scheduler> make_stopping(const StudyConfig& config, search::Sampler& sampler,
                                                 std::vector<int> run_caps) {
  search::StoppingOptions options = config.stopping_options;
  options.max_epochs = full_epochs(config, sampler);
  if (const auto size = sampler.size(); run_caps.empty() && size) {  // a grid has an end of its own
    run_caps.push_back(static_cast<int>(std::min<std::int64_t>(*size, std::numeric_limits<int>::max())));
  }
  return search::stopping_rule(config.early_stopping).make(options, config.goal, run_caps);
}

void lower(std::optional<int>& cap, std::optional<std::int64_t> limit) {
  if (!limit) return;
  const auto most = static_cast<int>(std::min<std::int64_t>(*limit, std::numeric_limits<int>::max()));
  cap = cap ? std::min(*cap, most) : most;
}

}  // namespace

std::optional<int> Strategy::trials(int enqueued) const {
  std::optional<int> all = cap;
  if (const auto size = sampler->size()) lower(all, *size + enqueued);
  return all;
}

Strategy make_strategy(const StudyConfig& config, const std::vector<int>& run_caps) {
  Strategy strategy;
  const search::Method& method = search::method(config.method);
  std::set<std::string> fixed = config.shape_changing;
  fixed.insert(config.padded.begin(), config.padded.end());
  const search::SearchTask task{config.space, config.goal, config.seed, fixed};
  strategy.sampler = method.sampler(config.method_options, task);
  strategy.scheduler = method.scheduler != nullptr ? method.scheduler(config.method_options, task, run_caps)
                                                   : make_stopping(config, *strategy.sampler, run_caps);
  if (!run_caps.empty()) strategy.cap = run_caps.back();
  lower(strategy.cap, strategy.scheduler->capacity());
  return strategy;
}

std::vector<int> next_caps(const std::vector<int>& stored, const StudyConfig& config) {
  std::vector<int> caps = stored;
  // A cap that the study has had is no edit: --trials, or an edit, raised it since.
  if (!config.run_cap || std::find(caps.begin(), caps.end(), *config.run_cap) != caps.end()) return caps;
  if (!caps.empty() && *config.run_cap < caps.back()) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: run_cap: found {}, wanted at least {}, as study '{}' has; "
                                                "--fresh starts a new one beside it",
                                                config.file.string(), *config.run_cap, caps.back(), config.study));
  }
  if (caps.empty() || *config.run_cap > caps.back()) caps.push_back(*config.run_cap);
  return caps;
}

}  // namespace hfta::engine
