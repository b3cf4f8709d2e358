#include "search/stopping.hpp"

#include <algorithm>

#include "search/repetition.hpp"

namespace hfta::search {

const std::vector<StoppingField>& stopping_fields() {
  static const std::vector<StoppingField> fields = {
      {"min_epochs", &StoppingOptions::min_epochs, 1, "Epochs that every trial gets before it is judged."},
      {"min_trials", &StoppingOptions::min_trials, 1, "Trials drawn earlier that have to have come as far."},
      {"eta", &StoppingOptions::eta, 2, "One in `eta` trials goes on to the next rung, with `eta` times the epochs."},
      {"confidence", &StoppingOptions::confidence, 50,
       "Percent: how certain it has to be that a configuration is worse than the best one.", 99},
  };
  return fields;
}

const std::vector<StoppingRule>& stopping_rules() {
  static const std::vector<StoppingRule> rules = {
      {"none",
       {},
       "every trial trains for all of its epochs",
       [](const StoppingOptions& options, trials::Goal, const std::vector<int>&) {
         return make_full(options.max_epochs);
       }},
      {"median",
       {"min_epochs", "min_trials"},
       "a trial is stopped where its best value is worse than the median of earlier trials' running means",
       make_median},
      {"asha",
       {"min_epochs", "eta"},
       "asynchronous successive halving: at each rung one in eta trials goes on, the others wait",
       make_asha},
      {"racing",
       {"min_epochs", "confidence"},
       "with `repeat` or `folds`: a configuration is stopped where its repetitions are worse than those of the best "
       "one "
       "before it, by a signed-rank test of the pairs",
       [](const StoppingOptions& options, trials::Goal goal, const std::vector<int>&) {
         return make_racing({options.max_epochs, options.min_epochs, options.confidence}, options.repetitions, goal);
       },
       /*compares_repetitions=*/true},
  };
  return rules;
}

const StoppingRule& stopping_rule(std::string_view name) {
  const std::vector<StoppingRule>& all = stopping_rules();
  return *std::find_if(all.begin(), all.end(), [&](const StoppingRule& rule) { return rule.name == name; });
}

}  // namespace hfta::search
