#include "search/methods.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hfta::search {
namespace {

std::string brackets_text(const MethodOptions& options) {
  std::string text = "brackets of a pass (trials x epochs):";
  for (const std::vector<Rung>& bracket : hyperband_brackets(options.hyperband)) {
    text += " [";
    for (std::size_t i = 0; i < bracket.size(); ++i) {
      text += fmt::format("{}{}x{}", i == 0 ? "" : " ", bracket[i].trials, bracket[i].epochs);
    }
    text += "]";
  }
  return text;
}

std::unique_ptr<Sampler> grid(const MethodOptions&, const trials::Space& space, trials::Goal, std::uint64_t) {
  return make_grid(space);
}

std::unique_ptr<Sampler> random(const MethodOptions&, const trials::Space& space, trials::Goal, std::uint64_t seed) {
  return make_random(space, seed);
}

std::unique_ptr<Sampler> tpe(const MethodOptions& options, const trials::Space& space, trials::Goal goal,
                             std::uint64_t seed) {
  return make_tpe(space, seed, goal, options.tpe);
}

std::unique_ptr<Scheduler> hyperband(const MethodOptions& options, trials::Goal goal,
                                     const std::vector<int>& run_caps) {
  return make_hyperband(options.hyperband, goal, run_caps);
}

std::vector<MethodField> hyperband_fields() {
  return {{"min_epochs", [](MethodOptions& all) -> int& { return all.hyperband.min_epochs; }, 1, 1'000'000, nullptr,
           "Epochs a trial gets at least."},
          {"max_epochs", [](MethodOptions& all) -> int& { return all.hyperband.max_epochs; }, 1, 1'000'000,
           "train.epochs", "Epochs a trial gets at most; not more than `train.epochs`."},
          {"eta", [](MethodOptions& all) -> int& { return all.hyperband.eta; }, 2, 1000, nullptr,
           "One in `eta` trials goes on to the next rung, with `eta` times the epochs."}};
}

std::vector<MethodField> tpe_fields() {
  return {{"startup_trials", [](MethodOptions& all) -> int& { return all.tpe.startup_trials; }, 1, 1'000'000, nullptr,
           "Random draws until so many trials have ended."},
          {"candidates", [](MethodOptions& all) -> int& { return all.tpe.candidates; }, 1, 100'000, nullptr,
           "How many configurations are weighed for each draw."}};
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {.name = "grid",
       .sentence = "every combination once, the last parameter fastest",
       .fields = {},
       .has_end = true,
       .needs_list = true,
       .sampler = grid,
       .scheduler = nullptr,
       .plan_text = nullptr},
      {.name = "random",
       .sentence = "independent draws; a finite space is not repeated until all of it was tried",
       .fields = {},
       .has_end = false,
       .needs_list = false,
       .sampler = random,
       .scheduler = nullptr,
       .plan_text = nullptr},
      {.name = "hyperband",
       .sentence = "as random, with successive halving in Hyperband's brackets",
       .fields = hyperband_fields(),
       .has_end = true,
       .needs_list = false,
       .sampler = random,
       .scheduler = hyperband,
       .plan_text = brackets_text},
      {.name = "tpe",
       .sentence = "learns from the trials so far, by the tree-structured Parzen estimator as in Optuna",
       .fields = tpe_fields(),
       .has_end = false,
       .needs_list = false,
       .sampler = tpe,
       .scheduler = nullptr,
       .plan_text = nullptr},
  };
  return all;
}

const Method* find_method(std::string_view name) {
  const std::vector<Method>& all = methods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Method& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Method& method(std::string_view name) { return *find_method(name); }

}  // namespace hfta::search
