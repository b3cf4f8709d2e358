#include <fmt/format.h>

#include <algorithm>

#include "engine/config/study.hpp"

namespace hfta::engine::configuration {

void read_budget(Reader& root, StudyConfig& config) {
  if (const auto cap = root.optional_integer("run_cap")) config.run_cap = static_cast<int>(*cap);
  Reader budget = root.section("budget");
  const auto hours = budget.optional_number("hours"), minutes = budget.optional_number("minutes");
  if (hours || minutes) config.budget.seconds = hours.value_or(0) * 3600 + minutes.value_or(0) * 60;
  config.budget.epochs = budget.optional_integer("epochs");
  if (const auto trials = budget.optional_integer("trials")) {
    if (config.run_cap) budget.fail("trials", "found it beside run_cap, which means the same; wanted one of them");
    config.run_cap = static_cast<int>(*trials);
  }
  if (root.has("budget") && !config.budget.seconds && !config.budget.epochs && !config.run_cap) {
    budget.fail("", "found no budget, wanted hours, minutes, trials or epochs");
  }
  if (config.run_cap) return;
  const bool limited = config.budget.seconds || config.budget.epochs;
  if (!search::method(config.method).has_end && !limited) {
    root.fail("run_cap", fmt::format("found nothing, wanted the number of trials: {} search has no end of its own",
                                     config.method));
  }
  const auto halves = [](const search::Stopping& one) { return one.rule == "sha"; };
  if (std::any_of(config.early_stopping.begin(), config.early_stopping.end(), halves) && limited) {
    root.fail("run_cap", "found nothing, wanted the number of trials, which early_stopping: sha halves");
  }
  const search::Method& method = search::method(config.method);
  if (limited && !method.needs_list && !method.copies_trials) config.run_cap = kEndless;
}

}  // namespace hfta::engine::configuration
