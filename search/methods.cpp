#include "search/methods.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "search/sampler/begun.hpp"
#include "search/sampler/restricted.hpp"
#include "search/space.hpp"

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

std::string population_text(const MethodOptions& options) {
  const PbtOptions& pbt = options.pbt;
  return fmt::format(
      "populations of {} trials, {} epochs each; after every {}, the worst {} % go on from copies of the best",
      pbt.population, pbt.max_epochs, pbt.interval == 1 ? "one" : std::to_string(pbt.interval), pbt.truncation);
}

std::unique_ptr<Sampler> grid(const MethodOptions&, const SearchTask& task) { return make_grid(task.space); }

std::unique_ptr<Sampler> random(const MethodOptions&, const SearchTask& task) {
  return make_random(task.space, task.seed, task.repeats);
}

std::unique_ptr<Sampler> sobol(const MethodOptions&, const SearchTask& task) {
  return make_sobol(task.space, task.seed, task.repeats);
}

std::unique_ptr<Sampler> gp(const MethodOptions& options, const SearchTask& task) {
  return make_gp(task.space, task.seed, task.goal, options.gp, task.repeats);
}

std::unique_ptr<Sampler> cmaes(const MethodOptions& options, const SearchTask& task) {
  return make_cmaes(task.space, task.seed, task.goal, options.cmaes, task.repeats);
}

std::unique_ptr<Sampler> evolution(const MethodOptions& options, const SearchTask& task) {
  return make_evolution(task.space, task.seed, task.goal, options.evolution, task.repeats);
}

std::unique_ptr<Sampler> nsga2(const MethodOptions& options, const SearchTask& task) {
  const std::vector<trials::Goal> goals = task.goals.empty() ? std::vector{task.goal} : task.goals;
  return make_nsga2(task.space, task.seed, goals, options.nsga2, task.repeats);
}

std::unique_ptr<Sampler> tpe(const MethodOptions& options, const SearchTask& task) {
  return make_tpe(task.space, task.seed, task.goal, options.tpe, task.repeats);
}

std::unique_ptr<Sampler> of_another(const MethodOptions& options, const SearchTask& task) {
  return method(options.sampler).sampler(options, task);
}

std::unique_ptr<Sampler> bohb(const MethodOptions& options, const SearchTask& task) {
  std::vector<int> budgets;
  const std::vector<std::vector<Rung>> brackets = hyperband_brackets(options.hyperband);
  for (const Rung& rung : brackets.front()) budgets.push_back(rung.epochs);
  return make_bohb(task.space, task.seed, task.goal, options.bohb, std::move(budgets), task.repeats);
}

std::unique_ptr<Sampler> dehb(const MethodOptions& options, const SearchTask& task) {
  return make_dehb(task.space, task.seed, task.goal, options.dehb, options.hyperband,
                   static_cast<int>(task.prior.size()));
}

std::unique_ptr<Sampler> freeze_thaw_sampler(const MethodOptions& options, const SearchTask& task) {
  return make_freeze_thaw(task.space, task.splitting, task.seed, task.goal, options.freeze_thaw, task.repeats);
}

std::unique_ptr<Scheduler> freeze_thaw_scheduler(const MethodOptions& options, const SearchTask& task,
                                                 const std::vector<int>& run_caps) {
  return make_freeze_thaw_scheduler(task.space, task.splitting, task.seed, task.goal, options.freeze_thaw, task.prior,
                                    run_caps, task.slots);
}

std::unique_ptr<Scheduler> dehb_brackets(const MethodOptions& options, const SearchTask& task,
                                         const std::vector<int>& run_caps) {
  return make_dehb_scheduler(options.hyperband, task.goal, run_caps);
}

std::unique_ptr<Scheduler> hyperband(const MethodOptions& options, const SearchTask& task,
                                     const std::vector<int>& run_caps) {
  return make_hyperband(options.hyperband, task.goal, run_caps);
}

std::unique_ptr<Scheduler> pbt(const MethodOptions& options, const SearchTask& task, const std::vector<int>& run_caps) {
  return make_pbt(options.pbt, task.goal, task.space, task.fixed, task.seed, run_caps);
}

int& hyperband_epochs(MethodOptions& options) { return options.hyperband.max_epochs; }
int& freeze_thaw_epochs(MethodOptions& options) { return options.freeze_thaw.max_epochs; }
int& pbt_epochs(MethodOptions& options) { return options.pbt.max_epochs; }

std::vector<MethodField> hyperband_fields() {
  return {{"min_epochs", [](MethodOptions& all) -> int& { return all.hyperband.min_epochs; }, 1, 1'000'000, nullptr,
           "Epochs a trial gets at least.", true},
          {"max_epochs", hyperband_epochs, 1, 1'000'000, "train.epochs",
           "Epochs a trial gets at most; not more than `train.epochs`."},
          {"eta", [](MethodOptions& all) -> int& { return all.hyperband.eta; }, 2, 1000, nullptr,
           "One in `eta` trials goes on to the next rung, with `eta` times the epochs."}};
}

std::vector<MethodField> bohb_fields() {
  std::vector<MethodField> fields = hyperband_fields();
  fields.push_back({"min_points", [](MethodOptions& all) -> int& { return all.bohb.min_points; }, 0, 1'000'000, nullptr,
                    "A model is made of the largest number of epochs that so many trials, and two more, have reached; "
                    "0: one more than there are parameters."});
  fields.push_back({"top_percent", [](MethodOptions& all) -> int& { return all.bohb.top_percent; }, 1, 99, nullptr,
                    "Percent of these trials that count as good."});
  fields.push_back({"candidates", [](MethodOptions& all) -> int& { return all.bohb.candidates; }, 1, 100'000, nullptr,
                    "How many configurations are weighed for each draw."});
  fields.push_back({"random_percent", [](MethodOptions& all) -> int& { return all.bohb.random_percent; }, 0, 100,
                    nullptr, "Percent of the draws that are random."});
  return fields;
}

std::vector<MethodField> dehb_fields() {
  std::vector<MethodField> fields = hyperband_fields();
  fields.push_back({"mutation_percent", [](MethodOptions& all) -> int& { return all.dehb.mutation_percent; }, 0, 200,
                    nullptr, "Percent of the difference of two parents that is added to the third."});
  fields.push_back({"crossover_percent", [](MethodOptions& all) -> int& { return all.dehb.crossover_percent; }, 0, 100,
                    nullptr, "Percent: how likely a parameter is the mutant's, rather than its target's."});
  return fields;
}

std::vector<MethodField> freeze_thaw_fields() {
  return {
      {"max_epochs", freeze_thaw_epochs, 1, 1'000'000, "train.epochs",
       "Epochs a trial gets at most; not more than `train.epochs`."},
      {"startup_trials", [](MethodOptions& all) -> int& { return all.freeze_thaw.startup_trials; }, 1, 1'000'000,
       nullptr, "New trials alone begin until so many have shown a value."},
      {"slots", [](MethodOptions& all) -> int& { return all.freeze_thaw.slots; }, 0, 1'000'000, nullptr,
       "Trials that are picked to train side by side; 0: as many as the devices' arrays have slots."},
      {"eta", [](MethodOptions& all) -> int& { return all.freeze_thaw.eta; }, 2, 1000, nullptr,
       "A stage of training has `eta` times the epochs of the one before; half of the slots are dealt to all stages in "
       "turn."},
      {"random_percent", [](MethodOptions& all) -> int& { return all.freeze_thaw.random_percent; }, 0, 100, nullptr,
       "Percent of the new configurations that are not chosen by what they promise: they are Sobol points."}};
}

std::string stages_text(const MethodOptions& options) {
  const FreezeThawOptions& own = options.freeze_thaw;
  std::string text =
      "half of the slots train the trials whose next epoch promises most; the others take new trials in turn with "
      "those of less than";
  std::int64_t end = own.eta;
  for (; end < own.max_epochs; end *= own.eta) text += fmt::format(" {},", end);
  return text + fmt::format(" {} epochs", own.max_epochs);
}

std::vector<MethodField> pbt_fields() {
  return {
      {"population", [](MethodOptions& all) -> int& { return all.pbt.population; }, 1, 1'000'000, nullptr,
       "Trials that train side by side."},
      {"interval", [](MethodOptions& all) -> int& { return all.pbt.interval; }, 1, 1'000'000, nullptr,
       "Epochs from one judgement to the next.", true},
      {"max_epochs", pbt_epochs, 1, 1'000'000, "train.epochs", "Epochs a trial gets; not more than `train.epochs`."},
      {"truncation", [](MethodOptions& all) -> int& { return all.pbt.truncation; }, 0, 50, nullptr,
       "Percent of the population: so many of the worst go on from copies of so many of the best."},
      {"resample", [](MethodOptions& all) -> int& { return all.pbt.resample; }, 0, 100, nullptr,
       "Percent: how likely a copied parameter is drawn anew, rather than multiplied by 0.8 or 1.2."}};
}

std::vector<MethodField> tpe_fields() {
  return {{"startup_trials", [](MethodOptions& all) -> int& { return all.tpe.startup_trials; }, 1, 1'000'000, nullptr,
           "Sobol points until so many trials have ended, and half as many were not PRUNED."},
          {"candidates", [](MethodOptions& all) -> int& { return all.tpe.candidates; }, 1, 100'000, nullptr,
           "How many configurations are weighed for each draw, and as many again with the best one's categories."}};
}

std::vector<MethodField> gp_fields() {
  return {{"startup_trials", [](MethodOptions& all) -> int& { return all.gp.startup_trials; }, 1, 1'000'000, nullptr,
           "Sobol points until so many trials have ended."}};
}

std::vector<MethodField> cmaes_fields() {
  return {{"population", [](MethodOptions& all) -> int& { return all.cmaes.population; }, 0, 1'000'000, nullptr,
           "Trials of a generation, at least 4; 0: 4 + 3 times the logarithm of the number of parameters."}};
}

std::vector<MethodField> nsga2_fields() {
  return {{"population", [](MethodOptions& all) -> int& { return all.nsga2.population; }, 2, 1'000'000, nullptr,
           "The best COMPLETE trials, which may be parents; Sobol points until there are so many."}};
}

std::vector<MethodField> evolution_fields() {
  return {{"population", [](MethodOptions& all) -> int& { return all.evolution.population; }, 1, 1'000'000, nullptr,
           "The latest trials that ended, which may be parents; Sobol points until there are so many."},
          {"tournament", [](MethodOptions& all) -> int& { return all.evolution.tournament; }, 1, 1'000'000, nullptr,
           "The best of so many of them, picked at random, is the parent."}};
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {.name = "grid",
       .sentence = "every combination once, the last parameter fastest",
       .has_end = true,
       .needs_list = true,
       .sampler = grid,
       .takes_objectives = true},
      {.name = "random",
       .sentence = "independent draws; of a finite space, pass after pass, each of which tries all of it",
       .sampler = random,
       .takes_objectives = true},
      {.name = "sobol",
       .sentence = "scrambled Sobol points, which fill the space more evenly than random draws",
       .sampler = sobol,
       .takes_objectives = true},
      {.name = "hyperband",
       .sentence = "successive halving in Hyperband's brackets, of draws by its `sampler`",
       .fields = hyperband_fields(),
       .has_end = true,
       .sampler = of_another,
       .scheduler = hyperband,
       .max_epochs = hyperband_epochs,
       .plan_text = brackets_text,
       .takes_sampler = true},
      {.name = "bohb",
       .sentence = "Hyperband's brackets, of draws by a model of the trials that came furthest",
       .fields = bohb_fields(),
       .has_end = true,
       .sampler = bohb,
       .scheduler = hyperband,
       .max_epochs = hyperband_epochs,
       .plan_text = brackets_text,
       .learns = true,
       .reads_curves = true},
      {.name = "dehb",
       .sentence = "Hyperband's brackets, in which configurations evolve from one another by differential evolution",
       .fields = dehb_fields(),
       .has_end = true,
       .sampler = dehb,
       .scheduler = dehb_brackets,
       .max_epochs = hyperband_epochs,
       .plan_text = brackets_text,
       .takes_conditions = true,
       .learns = true,
       .reads_curves = true},
      {.name = "freeze_thaw",
       .sentence = "after every epoch the slots go to the trials whose learning curves promise most, new ones included",
       .fields = freeze_thaw_fields(),
       .sampler = freeze_thaw_sampler,
       .scheduler = freeze_thaw_scheduler,
       .max_epochs = freeze_thaw_epochs,
       .plan_text = stages_text,
       .learns = true,
       .reads_curves = true},
      {.name = "tpe",
       .sentence = "learns from the trials so far, by the tree-structured Parzen estimator as in Optuna",
       .fields = tpe_fields(),
       .sampler = tpe,
       .learns = true},
      {.name = "gp",
       .sentence = "learns from the trials so far, by a Gaussian process and the expected improvement; W&B's `bayes`",
       .fields = gp_fields(),
       .sampler = gp,
       .learns = true},
      {.name = "cmaes",
       .sentence =
           "learns from the trials so far, by adapting a normal distribution to the better half of each generation",
       .fields = cmaes_fields(),
       .sampler = cmaes,
       .learns = true},
      {.name = "evolution",
       .sentence = "learns from the trials so far: a good one of the latest with one parameter changed",
       .fields = evolution_fields(),
       .sampler = evolution,
       .learns = true},
      {.name = "nsga2",
       .sentence = "learns from the trials so far, for several objectives: children of the best and least crowded ones",
       .fields = nsga2_fields(),
       .sampler = nsga2,
       .takes_objectives = true,
       .learns = true},
      {.name = "pbt",
       .sentence =
           "as random, and the worst of a population go on from copies of the best, with parameters near theirs",
       .fields = pbt_fields(),
       .has_end = true,
       .sampler = random,
       .scheduler = pbt,
       .max_epochs = pbt_epochs,
       .plan_text = population_text,
       .copies_trials = true},
  };
  return all;
}

namespace {

// A number may also be its default, which can stand for "as another key says".
void check_numbers(const Method& method, MethodOptions options) {
  MethodOptions defaults;
  for (const MethodField& field : method.fields) {
    const int found = field.of(options);
    if ((found >= field.least && found <= field.most) || found == field.of(defaults)) continue;
    throw Error(ErrorKind::kConfig, fmt::format("{}.{}: found {}, wanted {} to {}", method.name, field.name, found,
                                                field.least, field.most));
  }
}

}  // namespace

std::unique_ptr<Sampler> make_sampler(const Method& method, const MethodOptions& options, const SearchTask& task) {
  validate(task.space);
  check_numbers(method, options);
  const auto make = [&method, options, goal = task.goal, fixed = task.fixed, prior = task.prior,
                     splitting = task.splitting,
                     goals = task.goals](const trials::Space& space, std::uint64_t seed, Repeats repeats) {
    return method.sampler(options, {space, goal, seed, fixed, {}, {}, prior, splitting, {}, goals, repeats});
  };
  const Conditions by = method.takes_conditions ? Conditions::kBySampler : Conditions::kByGroups;
  std::unique_ptr<Sampler> sampler = make_restricted(task.space, task.seed, task.constraints, make, by);
  return make_pointed(task.space, task.seed, task.constraints, task.points, make_warm(task.prior, std::move(sampler)));
}

bool learns(const Method& method, const MethodOptions& options) {
  return method.takes_sampler ? hfta::search::method(options.sampler).learns : method.learns;
}

bool lends_sampler(const Method& method) {
  return method.scheduler == nullptr && !method.has_end && !method.takes_sampler;
}

const Method* find_method(std::string_view name) {
  const std::vector<Method>& all = methods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Method& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Method& method(std::string_view name) {
  if (const Method* const found = find_method(name)) return *found;
  std::vector<std::string> names;
  for (const Method& one : methods()) names.emplace_back(one.name);
  throw Error(ErrorKind::kConfig, fmt::format("method: found '{}', wanted one of {}", printable(name), join(names)));
}

}  // namespace hfta::search
