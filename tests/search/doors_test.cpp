// What a program that embeds the library may get wrong: reports on trials that cannot be, numbers that cannot be meant,
// spaces without parameters.

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "search/methods.hpp"
#include "search/repetition.hpp"
#include "search/sampler.hpp"
#include "search/scheduler.hpp"
#include "search/stopping.hpp"

using namespace hfta::search;
using hfta::Error;
using hfta::ErrorKind;
using hfta::trials::Goal;
using hfta::trials::Params;
using hfta::trials::Space;

namespace {

const Space kNoSpace;
const std::set<std::string> kNone;

template <typename Action>
std::optional<ErrorKind> refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  return std::nullopt;
}

Stopping with_numbers(const std::string& rule) {
  Stopping stopping{rule, {}};
  stopping.options.upper = 10;
  stopping.options.value = 0;
  return stopping;
}

// A scheduler of every rule and of every method that has one, by name; some under repetitions.
std::vector<std::pair<std::string, std::unique_ptr<Scheduler>>> all_schedulers() {
  std::vector<std::pair<std::string, std::unique_ptr<Scheduler>>> all;
  const hfta::trials::Repetitions five{5, 1};
  for (const StoppingRule& rule : stopping_rules()) {
    if (rule.compare != nullptr) continue;
    const auto make = [&] { return make_stopping({with_numbers(rule.name)}, 9, Goal::kMinimize, {20}); };
    all.emplace_back(rule.name, make());
    all.emplace_back(rule.name + std::string(", repeated"), make_repeated(make(), five, Goal::kMinimize));
  }
  all.emplace_back("racing", make_racing({.max_epochs = 9}, five, Goal::kMinimize));
  MethodOptions options;
  const SearchTask task{.space = kNoSpace, .fixed = kNone};
  for (const Method& method : methods()) {
    if (method.scheduler != nullptr) all.emplace_back(method.name, method.scheduler(options, task, {20}));
  }
  return all;
}

}  // namespace

TEST_CASE("no scheduler takes a report or the end of a trial below 0") {
  int seen = 0;
  for (const auto& one : all_schedulers()) {
    CAPTURE(one.first);
    Scheduler& scheduler = *one.second;
    ++seen;
    CHECK(refusal([&] { (void)scheduler.report(-1, 1, 0.5); }) == ErrorKind::kInternal);
    CHECK(refusal([&] { (void)scheduler.report(0, 0, 0.5); }) == ErrorKind::kInternal);
    CHECK(refusal([&] { (void)scheduler.report(0, 1000, 0.5); }) == ErrorKind::kInternal);
    CHECK(refusal([&] { scheduler.fail(-1); }) == ErrorKind::kInternal);
    CHECK(scheduler.take_verdicts().empty());
  }
  CHECK(seen > 20);
}

TEST_CASE("a maker refuses numbers that it would divide by, or wait for without end") {
  const FreezeThawOptions bad[] = {{.max_epochs = 0}, {.startup_trials = 0},  {.slots = -1}, {.eta = 1},
                                   {.eta = 0},        {.random_percent = 101}};
  for (const FreezeThawOptions& options : bad) {
    CHECK(refusal([&] { (void)make_freeze_thaw(kNoSpace, kNone, 1, Goal::kMinimize, options); }) == ErrorKind::kConfig);
    CHECK(refusal([&] { (void)make_freeze_thaw_scheduler(kNoSpace, kNone, 1, Goal::kMinimize, options, {}, {}); }) ==
          ErrorKind::kConfig);
  }
  for (const EvolutionOptions& options : {EvolutionOptions{.population = 0}, EvolutionOptions{.tournament = 0}}) {
    CHECK(refusal([&] { (void)make_evolution(kNoSpace, 1, Goal::kMinimize, options); }) == ErrorKind::kConfig);
  }
}

TEST_CASE("every method draws in a space without parameters") {
  MethodOptions options;
  const SearchTask task{.space = kNoSpace, .fixed = kNone, .repeats = Repeats::kAllowed};
  for (const Method& method : methods()) {
    CAPTURE(method.name);
    const std::unique_ptr<Sampler> sampler = make_sampler(method, options, task);
    History history;
    for (int i = 0; i < 200; ++i) {
      const std::vector<Params> drawn = sampler->ask(i, 1, history, {});
      if (drawn.empty()) break;  // a grid of one
      REQUIRE(drawn.front().empty());
      SeenTrial trial{drawn.front()};
      trial.ended = hfta::trials::State::kComplete;
      trial.values = {0.5 + i};
      trial.curve = {0.5 + i};
      history.push_back(std::move(trial));
    }
  }
}
