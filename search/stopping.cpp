#include "search/stopping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"
#include "search/repetition.hpp"

namespace hfta::search {
namespace {

constexpr double kMostEpochs = 1e6, kEverything = std::numeric_limits<double>::infinity();

std::unique_ptr<Scheduler> make_none(const StoppingOptions& options, trials::Goal, const std::vector<int>&) {
  return make_full(options.max_epochs);
}

// The rule of Optuna's ThresholdPruner.
Decision beyond_threshold(const OwnValues& trial, const StoppingOptions& options, trials::Goal) {
  if (trial.epoch < options.min_epochs) return Decision::kContinue;
  return trial.value < options.lower || trial.value > options.upper ? Decision::kStop : Decision::kContinue;
}

Decision without_progress(const OwnValues& trial, const StoppingOptions& options, trials::Goal) {
  if (trial.epoch < options.min_epochs) return Decision::kContinue;
  return trial.epoch - trial.best_at >= options.patience ? Decision::kComplete : Decision::kContinue;
}

Decision at_target(const OwnValues& trial, const StoppingOptions& options, trials::Goal goal) {
  return trials::better(options.value.value(), trial.value, goal) ? Decision::kContinue : Decision::kComplete;
}

}  // namespace

const std::vector<StoppingField>& stopping_fields() {
  using Options = StoppingOptions;
  static const std::vector<StoppingField> fields = {
      {"min_epochs", &Options::min_epochs, 1, kMostEpochs, "Epochs that every trial gets before it is judged."},
      {"min_trials", &Options::min_trials, 1, kMostEpochs, "Trials drawn earlier that have to have come as far."},
      {"eta", &Options::eta, 2, kMostEpochs,
       "One in `eta` trials goes on to the next rung, with `eta` times the epochs."},
      {"mode",
       &Options::mode,
       0,
       1,
       "promote: trials wait at a rung, and go on when they are among the best; stop: a trial that is not "
       "among the best so far is stopped at once.",
       nullptr,
       {"promote", "stop"}},
      {"percentile", &Options::percentile, 0, 100,
       "A trial goes on while its best value is within the best so many percent."},
      {"patience", &Options::patience, 1, kMostEpochs,
       "Epochs without a better value after which a trial is complete."},
      {"min_delta", &Options::min_delta, 0, kEverything, "By how much a value has to be better to count as better."},
      {"lower", &Options::lower, -kEverything, kEverything, "A trial with a smaller value is stopped.", "none"},
      {"upper", &Options::upper, -kEverything, kEverything, "A trial with a larger value is stopped.", "none"},
      {"value", &Options::value, -kEverything, kEverything, "The metric's value with which a trial is complete.", ""},
      {"max_iter", &Options::max_iter, 0, kMostEpochs,
       "Bands at `max_iter` / `eta`, again divided by `eta`, and so on, `s` of them; 0: at "
       "`min_epochs`, and `eta` times as many each time."},
      {"s", &Options::s, 0, 100, "How many bands there are below `max_iter`."},
      {"confidence", &Options::confidence, 50, 99,
       "Percent: how certain it has to be that a configuration is worse than the best one."},
  };
  return fields;
}

std::string text_of(const StoppingField& field, const StoppingOptions& options) {
  struct Text {
    const StoppingField& field;
    std::string operator()(int number) const { return std::to_string(number); }
    std::string operator()(double number) const { return std::isfinite(number) ? shortest(number) : ""; }
    std::string operator()(AshaMode mode) const { return field.choices.at(static_cast<std::size_t>(mode)); }
    std::string operator()(const std::optional<int>& number) const { return std::to_string(number.value_or(0)); }
    std::string operator()(const std::optional<double>& number) const { return number ? (*this)(*number) : ""; }
  };
  return std::visit([&](const auto member) { return Text{field}(options.*member); }, field.field);
}

const std::vector<StoppingRule>& stopping_rules() {
  static const std::vector<StoppingRule> rules = {
      {"none", {}, "every trial trains for all of its epochs", make_none},
      {"median",
       {"min_epochs", "min_trials"},
       "a trial is stopped where its best value is worse than the median of earlier trials' running means",
       make_median},
      {"percentile",
       {"min_epochs", "min_trials", "percentile"},
       "a trial is stopped where its best value is worse than a percentile of earlier trials' values",
       make_percentile},
      {"asha",
       {"min_epochs", "eta", "mode"},
       "asynchronous successive halving: at each rung one in eta trials goes on, the others wait",
       [](const StoppingOptions& options, trials::Goal goal, const std::vector<int>& run_caps) {
         return options.mode == AshaMode::kPromote ? make_asha(options, goal, run_caps)
                                                   : make_asha_stopping(options, goal);
       }},
      {"sha",
       {"min_epochs", "eta"},
       "successive halving: when all trials have reached a rung, the best one in eta goes on",
       make_sha},
      {"threshold",
       {"min_epochs", "lower", "upper"},
       "a trial is stopped whose value leaves a range",
       nullptr,
       beyond_threshold},
      {"patience",
       {"min_epochs", "patience", "min_delta"},
       "a trial is complete that has not become better for some epochs",
       nullptr,
       without_progress,
       /*completes=*/true},
      {"target", {"value"}, "a trial is complete that has reached a value", nullptr, at_target, /*completes=*/true},
      {"bands",
       {"min_epochs", "eta", "max_iter", "s"},
       "what W&B calls early_terminate: after some epochs a trial is stopped whose best value is not among the best of "
       "earlier trials'",
       make_bands},
      {"racing",
       {"min_epochs", "confidence"},
       "with `repeat` or `folds`: a configuration is stopped where its repetitions are worse than those of the best "
       "one before it, by a signed-rank test of the pairs",
       nullptr,
       nullptr,
       /*completes=*/false,
       [](const StoppingOptions& options, const trials::Repetitions& repetitions, trials::Goal goal) {
         return make_racing({options.max_epochs, options.min_epochs, options.confidence}, repetitions, goal);
       }},
  };
  return rules;
}

const StoppingRule& stopping_rule(std::string_view name) {
  const std::vector<StoppingRule>& all = stopping_rules();
  const auto found = std::find_if(all.begin(), all.end(), [&](const StoppingRule& rule) { return rule.name == name; });
  if (found == all.end()) {
    throw Error(ErrorKind::kConfig, fmt::format("early_stopping: found no rule '{}'", printable(name)));
  }
  return *found;
}

bool reads(const StoppingRule& rule, std::string_view field) {
  return std::find(rule.reads.begin(), rule.reads.end(), field) != rule.reads.end();
}

std::vector<std::pair<std::string, std::string>> fields_read(const Stopping& stopping) {
  std::vector<std::pair<std::string, std::string>> read;
  for (const StoppingField& field : stopping_fields()) {
    std::string value = text_of(field, stopping.options);
    if (reads(stopping_rule(stopping.rule), field.name) && !value.empty())
      read.emplace_back(field.name, std::move(value));
  }
  return read;
}

}  // namespace hfta::search
