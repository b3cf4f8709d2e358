// Population based training: who is copied, what becomes of parameters, and that the order of reports plays no part.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "driven.hpp"
#include "search/explore.hpp"
#include "search/scheduler.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::search::testing;
using namespace hfta::trials::testing;
using hfta::trials::Distribution;
using hfta::trials::DistributionKind;
using hfta::trials::Goal;
using hfta::trials::Params;
using hfta::trials::ParamValue;

namespace {

const hfta::trials::Space& space() {
  static const hfta::trials::Space all = {
      {"lr", bounded(DistributionKind::kLogUniformValues, 1e-4, 1)},
      {"hidden", categorical({std::int64_t{32}, std::int64_t{64}})},
  };
  return all;
}

Params params_of(int trial) { return {{"lr", 0.01 * (trial + 1)}, {"hidden", std::int64_t{trial % 2 == 0 ? 32 : 64}}}; }

std::unique_ptr<Scheduler> pbt(const PbtOptions& options, std::vector<int> caps = {}) {
  auto scheduler = make_pbt(options, Goal::kMinimize, space(), {"hidden"}, 5, caps);
  for (int trial = 0; trial < scheduler->capacity().value(); ++trial) scheduler->enter(trial, params_of(trial));
  return scheduler;
}

double lr_of(const Params& params) { return std::get<double>(params.front().second); }

}  // namespace

TEST_CASE("a parameter moves to a neighbour that its distribution can give") {
  const ParamValue word = std::string("b");
  struct Case {
    Distribution distribution;
    ParamValue value, down, up;
  };
  const std::vector<ParamValue> words = {std::string("a"), std::string("b"), std::string("c"), std::string("d")};
  const Case cases[] = {
      {bounded(DistributionKind::kUniform, 0, 10), 5.0, 4.0, 6.0},
      {bounded(DistributionKind::kUniform, 0, 10), 9.0, 9.0 * 0.8, 10.0},
      {bounded(DistributionKind::kUniform, 4.5, 10), 5.0, 4.5, 6.0},
      {bounded(DistributionKind::kUniform, -2, 2), -1.0, -0.8, -1.2},
      {bounded(DistributionKind::kLogUniformValues, 1e-4, 1), 1e-4, 1e-4, 1e-4 * 1.2},
      {bounded(DistributionKind::kIntUniform, 1, 100), std::int64_t{50}, std::int64_t{40}, std::int64_t{60}},
      {bounded(DistributionKind::kIntUniform, 1, 5), std::int64_t{5}, std::int64_t{4}, std::int64_t{5}},
      {bounded(DistributionKind::kIntUniform, 1, 5), std::int64_t{1}, std::int64_t{1}, std::int64_t{2}},
      {bounded(DistributionKind::kIntUniform, 1, 5), std::int64_t{2}, std::int64_t{1}, std::int64_t{3}},
      {bounded(DistributionKind::kIntUniform, -5, 5), std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}},
      {bounded(DistributionKind::kIntUniform, -5, 5), std::int64_t{-2}, std::int64_t{-1}, std::int64_t{-3}},
      {bounded(DistributionKind::kQUniform, 0.1, 0.2, 0.1), 0.1, 0.1, 0.2},
      {bounded(DistributionKind::kQUniform, 0, 2, 1), 0.0, 0.0, 1.0},
      {bounded(DistributionKind::kQUniform, 0, 1, 0.1), 0.5, 0.4, 0.6},
      {bounded(DistributionKind::kQUniform, 8, 64, 8, true), std::int64_t{64}, std::int64_t{48}, std::int64_t{64}},
      {categorical(words), word, std::string("a"), std::string("c")},
      {categorical(words), std::string("a"), std::string("a"), std::string("b")},
      {categorical(words), std::string("d"), std::string("c"), std::string("d")},
      {categorical(words, {0.5, 0.25, 0, 0.25}), word, std::string("a"), std::string("d")},
      {categorical(words, {0, 0.5, 0.5, 0}), word, word, std::string("c")},
      {categorical({std::int64_t{7}}), std::int64_t{7}, std::int64_t{7}, std::int64_t{7}},
  };
  for (const Case& c : cases) {
    INFO(hfta::trials::name_of(c.distribution.kind) << " " << hfta::trials::to_text(c.value));
    CHECK(hfta::trials::to_text(moved(c.distribution, c.value, false)) == hfta::trials::to_text(c.down));
    CHECK(hfta::trials::to_text(moved(c.distribution, c.value, true)) == hfta::trials::to_text(c.up));
    CHECK(moved(c.distribution, c.value, true).index() == c.value.index());
  }
}

TEST_CASE("the worst go on from copies of the best, once all have come so far") {
  PbtOptions options{.population = 8, .interval = 2, .max_epochs = 6, .truncation = 25, .resample = 0};
  const auto scheduler = pbt(options);
  CHECK(scheduler->capacity() == 8);
  CHECK(scheduler->max_epochs() == 6);
  CHECK(scheduler->planned_epochs(0, 8) == 48);
  CHECK(scheduler->planned_epochs(6, 8) == 12);
  for (int trial = 0; trial < 8; ++trial) {
    CHECK(scheduler->target(trial) == 2);
    CHECK(scheduler->report(trial, 1, 9) == Decision::kContinue);
    CHECK(scheduler->take_verdicts().empty());
    // 3 and 5 are the worst; 6 and 1 the best. 0 and 7 tie with 5: the lower trial is better.
    const double values[] = {7, 1, 4, 9, 5, 7, 0.5, 6};
    CHECK(scheduler->report(trial, 2, values[trial]) == Decision::kPause);
  }
  const std::vector<Verdict> verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 8);
  for (const Verdict& verdict : verdicts) {
    INFO("trial " << verdict.trial);
    CHECK(verdict.decision == Decision::kContinue);
    CHECK(scheduler->target(verdict.trial) == 4);
    CHECK(verdict.copy.has_value() == (verdict.trial == 3 || verdict.trial == 5));
    if (!verdict.copy) continue;
    CHECK((verdict.copy->source == 6 || verdict.copy->source == 1));
    const double before = lr_of(params_of(verdict.copy->source)), after = lr_of(verdict.copy->params);
    CHECK((after == before * 1.2 || after == before * 0.8));
    CHECK(verdict.copy->params[1] == params_of(verdict.copy->source)[1]);  // fixed
  }
  for (int trial = 0; trial < 8; ++trial) {
    CHECK(scheduler->report(trial, 3, 1) == Decision::kContinue);
    CHECK(scheduler->report(trial, 4, trial) == Decision::kPause);
  }
  CHECK(scheduler->take_verdicts().size() == 8);
  for (int trial = 0; trial < 8; ++trial) CHECK(scheduler->report(trial, 6, 1) == Decision::kComplete);
  CHECK(scheduler->take_verdicts().empty());
}

TEST_CASE("a copy of a copy has the parameters of the copy") {
  const auto scheduler = pbt({.population = 2, .interval = 1, .max_epochs = 4, .truncation = 50, .resample = 0});
  double lr = lr_of(params_of(0));
  for (int epoch = 1; epoch < 4; ++epoch) {
    const int worse = epoch % 2;  // 1, then 0, then 1
    for (int trial = 0; trial < 2; ++trial) (void)scheduler->report(trial, epoch, trial == worse ? 2 : 1);
    const std::vector<Verdict> verdicts = scheduler->take_verdicts();
    REQUIRE(verdicts.size() == 2);
    const Verdict& copied = verdicts[static_cast<std::size_t>(worse)];
    REQUIRE(copied.copy);
    CHECK(copied.copy->source == 1 - worse);
    const double now = lr_of(copied.copy->params);
    CHECK((now == lr * 1.2 || now == lr * 0.8));
    lr = now;
  }
}

TEST_CASE("parameters are drawn anew as often as resample says") {
  const int resample = GENERATE(0, 30, 100);
  int anew = 0, all = 0;
  const auto scheduler =
      pbt({.population = 400, .interval = 1, .max_epochs = 9, .truncation = 50, .resample = resample});
  std::vector<Params> now;
  for (int trial = 0; trial < 400; ++trial) now.push_back(params_of(trial));
  for (int epoch = 1; epoch < 9; ++epoch) {
    for (int trial = 0; trial < 400; ++trial) (void)scheduler->report(trial, epoch, crossing(trial, epoch));
    const std::vector<Params> before = now;
    for (const Verdict& verdict : scheduler->take_verdicts()) {
      if (!verdict.copy) continue;
      const double lr = lr_of(verdict.copy->params),
                   old = lr_of(before[static_cast<std::size_t>(verdict.copy->source)]);
      const bool moved_there = lr == std::min(old * 1.2, 1.0) || lr == std::max(old * 0.8, 1e-4);
      anew += moved_there ? 0 : 1;
      ++all;
      now[static_cast<std::size_t>(verdict.trial)] = verdict.copy->params;
    }
  }
  REQUIRE(all == 1600);
  CHECK(anew >= 16 * resample - 16 * 8);  // six standard deviations of 30 % are 110
  CHECK(anew <= 16 * resample + 16 * 8);
  if (resample == 0) CHECK(anew == 0);
}

TEST_CASE("who has failed is neither copied nor waited for") {
  const auto scheduler = pbt({.population = 4, .interval = 1, .max_epochs = 3, .truncation = 50, .resample = 0});
  CHECK(scheduler->report(0, 1, 0.1) == Decision::kPause);
  CHECK(scheduler->report(1, 1, std::nan("")) == Decision::kStop);
  CHECK(scheduler->report(2, 1, 0.3) == Decision::kPause);
  CHECK(scheduler->take_verdicts().empty());
  scheduler->fail(3);  // before its first epoch
  std::vector<Verdict> verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 2);
  CHECK_FALSE(verdicts[0].copy);
  REQUIRE(verdicts[1].copy);
  CHECK(verdicts[1].copy->source == 0);
  CHECK(scheduler->report(2, 2, 0.3) == Decision::kPause);
  scheduler->fail(0);
  verdicts = scheduler->take_verdicts();
  REQUIRE(verdicts.size() == 1);  // alone, and no half of one is copied
  CHECK_FALSE(verdicts[0].copy);
  CHECK(scheduler->report(2, 3, 0.3) == Decision::kComplete);
  CHECK_THROWS_AS((void)scheduler->report(4, 1, 1), hfta::Error);
  CHECK_THROWS_AS((void)scheduler->report(2, 4, 1), hfta::Error);
  CHECK_THROWS_AS((void)scheduler->report(2, 2, 0.4), hfta::Error);
}

TEST_CASE("populations follow each other, and those of different caps do not mix") {
  struct Case {
    std::vector<int> caps;
    std::vector<std::set<int>> populations;
  };
  const Case c =
      GENERATE(Case{{}, {{0, 1, 2}}}, Case{{7}, {{0, 1, 2}, {3, 4, 5}, {6}}}, Case{{4, 6}, {{0, 1, 2}, {3}, {4, 5}}});
  const auto scheduler =
      pbt({.population = 3, .interval = 1, .max_epochs = 2, .truncation = 50, .resample = 0}, c.caps);
  int next = 0;
  for (const std::set<int>& population : c.populations) {
    for (const int trial : population) {
      CHECK(scheduler->take_verdicts().empty());
      CHECK(trial == next++);
      CHECK(scheduler->report(trial, 1, trial) == Decision::kPause);
    }
    CHECK(scheduler->take_verdicts().size() == population.size());
  }
  CHECK(scheduler->capacity() == next);
}

TEST_CASE("verdicts do not depend on when reports come in, nor on how often") {
  const Curve curve = GENERATE(as<Curve>{}, crossing, tied, diverging, doomed);
  const PbtOptions options{.population = 9, .interval = 2, .max_epochs = 9, .truncation = 34, .resample = 25};
  using Said = std::tuple<int, int, int, double>;  // trial, epoch, source, lr
  const auto said_of = [&](unsigned seed) {
    const auto scheduler = pbt(options, {20});
    std::set<Said> said;
    std::vector<int> epochs(20), ready(20);
    for (int trial = 0; trial < 20; ++trial) ready[static_cast<std::size_t>(trial)] = trial;
    std::mt19937 chance(seed);
    while (!ready.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(chance() % ready.size());
      const int trial = ready[static_cast<std::size_t>(at)];
      int& epoch = epochs[static_cast<std::size_t>(trial)];
      const double value = curve(trial, ++epoch);
      const Decision decision = scheduler->report(trial, epoch, value);
      if (chance() % 2 == 0) (void)scheduler->report(trial, epoch, value);
      if (decision != Decision::kContinue) ready.erase(ready.begin() + at);
      for (const Verdict& verdict : scheduler->take_verdicts()) {
        ready.push_back(verdict.trial);
        if (!verdict.copy) continue;
        said.emplace(verdict.trial, epochs[static_cast<std::size_t>(verdict.trial)], verdict.copy->source,
                     lr_of(verdict.copy->params));
      }
    }
    return said;
  };
  const std::set<Said> reference = said_of(0);
  CHECK(reference.empty() == std::isnan(curve(1, 1)));
  for (unsigned seed = 1; seed <= 20; ++seed) CHECK(said_of(seed) == reference);
}

TEST_CASE("impossible options are refused") {
  const auto refused = [](PbtOptions options, std::vector<int> caps = {}) {
    CHECK_THROWS_AS(make_pbt(options, Goal::kMinimize, space(), {}, 0, std::move(caps)), hfta::Error);
  };
  refused({.population = 0});
  refused({.interval = 0});
  refused({.truncation = 51});
  refused({.resample = 101});
  refused({}, {5, 4});
  refused({}, {0});
}
