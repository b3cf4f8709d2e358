// The TPE sampler and its densities.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "search/choices.hpp"
#include "search/sampler.hpp"
#include "search/sampler/parzen.hpp"

using namespace hfta;
using namespace hfta::search;
using trials::Distribution;
using trials::DistributionKind;
using trials::Goal;
using trials::Params;
using trials::ParamValue;
using trials::State;

namespace {

trials::Parameter range(const std::string& name, DistributionKind kind, double min, double max, double q = 1) {
  trials::Parameter parameter{name, {}};
  parameter.distribution.kind = kind;
  parameter.distribution.min = min;
  parameter.distribution.max = max;
  parameter.distribution.q = q;
  return parameter;
}

trials::Parameter words(const std::string& name, std::vector<ParamValue> values) {
  trials::Parameter parameter{name, {}};
  parameter.distribution.kind = DistributionKind::kCategorical;
  parameter.distribution.values = std::move(values);
  return parameter;
}

double number(const ParamValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

const trials::Space kMixed = {range("lr", DistributionKind::kLogUniformValues, 1e-5, 1),
                              range("hidden", DistributionKind::kIntUniform, 8, 512),
                              range("dropout", DistributionKind::kQUniform, 0, 0.9, 0.1),
                              words("act", {std::string("relu"), std::string("tanh"), std::string("gelu")})};

// Least at lr 1e-2, hidden 200, dropout 0.3, gelu.
double mixed_loss(const Params& params) {
  const double lr = std::log10(number(params[0].second)) + 2, hidden = (number(params[1].second) - 200) / 250;
  const double dropout = number(params[2].second) - 0.3;
  const double act = std::get<std::string>(params[3].second) == "gelu" ? 0 : 0.3;
  return lr * lr / 4 + hidden * hidden + dropout * dropout + act;
}

// `batch` draws at a time, all of them ended before the next.
double best_of(Sampler& sampler, int evaluations, int batch, const std::function<double(const Params&)>& loss) {
  History history;
  double best = HUGE_VAL;
  for (int n = 0; n < evaluations; n += batch) {
    for (Params& params : sampler.ask(n, batch, history)) {
      const double value = loss(params);
      best = std::min(best, value);
      history.push_back({std::move(params), {value}, {value}, State::kComplete});
    }
  }
  return best;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

History ended(int count, std::uint64_t seed = 5) {
  History history;
  for (Params& params : make_random(kMixed, seed)->ask(0, count, {})) {
    const double value = mixed_loss(params);
    history.push_back({std::move(params), {value}, {value}, State::kComplete});
  }
  return history;
}

}  // namespace

TEST_CASE("TPE finds better configurations than random search, one at a time and in batches") {
  struct Case {
    int evaluations, batch;
    double at_most;  // of random search's median
  };
  const Case c = GENERATE(Case{60, 1, 0.4}, Case{100, 1, 0.25}, Case{96, 8, 0.5});
  std::vector<double> random, tpe;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    random.push_back(best_of(*make_random(kMixed, seed), c.evaluations, c.batch, mixed_loss));
    tpe.push_back(best_of(*make_tpe(kMixed, seed, Goal::kMinimize, {}), c.evaluations, c.batch, mixed_loss));
  }
  INFO(median(tpe) << " against " << median(random));
  CHECK(median(tpe) <= c.at_most * median(random));
}

TEST_CASE("TPE maximizes as it minimizes") {
  const auto minus = [](const Params& params) { return -mixed_loss(params); };
  History low, high;
  const auto down = make_tpe(kMixed, 4, Goal::kMinimize, {}), up = make_tpe(kMixed, 4, Goal::kMaximize, {});
  for (int n = 0; n < 30; ++n) {
    Params a = down->ask(n, 1, low).at(0), b = up->ask(n, 1, high).at(0);
    REQUIRE(a == b);
    low.push_back({a, {}, {mixed_loss(a)}, State::kComplete});
    high.push_back({b, {}, {minus(b)}, State::kComplete});
  }
}

TEST_CASE("k draws at once are k draws one by one, and depend on nothing but seed, draw and history") {
  const History history = ended(40);
  const auto sampler = make_tpe(kMixed, 7, Goal::kMinimize, {});
  const std::vector<Params> at_once = sampler->ask(40, 6, history);
  History grown = history;
  for (int i = 0; i < 6; ++i) {
    const Params one = make_tpe(kMixed, 7, Goal::kMinimize, {})->ask(40 + i, 1, grown).at(0);
    CHECK(one == at_once[static_cast<std::size_t>(i)]);
    grown.push_back({one});
  }
  CHECK(sampler->ask(40, 6, history) == at_once);
  CHECK(make_tpe(kMixed, 8, Goal::kMinimize, {})->ask(40, 6, history) != at_once);
}

TEST_CASE("TPE draws Sobol points until enough trials have ended") {
  TpeOptions options;
  options.startup_trials = 12;
  const auto sampler = make_tpe(kMixed, 3, Goal::kMinimize, options);
  const auto sobol = make_sobol(kMixed, 3);
  History history = ended(30);
  for (std::size_t i = 11; i < history.size(); ++i) history[i].ended.reset();
  CHECK(sampler->ask(30, 5, history) == sobol->ask(30, 5, {}));
  history[11].ended = State::kPruned;
  CHECK(sampler->ask(30, 5, history) != sobol->ask(30, 5, {}));
}

TEST_CASE("TPE draws Sobol points while nearly all that ended were stopped early") {
  const auto sampler = make_tpe(kMixed, 3, Goal::kMinimize, {});
  const auto sobol = make_sobol(kMixed, 3);
  History history = ended(30);
  for (SeenTrial& trial : history) trial.ended = State::kPruned;
  for (const State other : {State::kComplete, State::kFail}) {
    for (std::size_t i = 0; i < 4; ++i) history[i].ended = other;
    CHECK(sampler->ask(30, 5, history) == sobol->ask(30, 5, {}));
    history[4].ended = other;
    CHECK(sampler->ask(30, 5, history) != sobol->ask(30, 5, {}));
    history[4].ended = State::kPruned;
  }
}

TEST_CASE("TPE keeps away from what fails, from what was pruned early and from what runs") {
  const trials::Space space = {range("x", DistributionKind::kUniform, 0, 1)};
  // Values lie level; what differs is how trials below 0.5 ended.
  const auto share_below = [&](const std::function<SeenTrial(double x)>& below) {
    int count = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      History history;
      for (const Params& params : make_random(space, seed)->ask(0, 40, {})) {
        const double x = number(params[0].second);
        history.push_back(x < 0.5 ? below(x) : SeenTrial{params, {1, 1, 1}, {1}, State::kComplete});
        history.back().params = params;
      }
      for (const Params& params : make_tpe(space, seed, Goal::kMinimize, {})->ask(40, 5, history)) {
        count += number(params[0].second) < 0.5 ? 1 : 0;
      }
    }
    return count / 200.0;
  };
  CHECK(share_below([](double) { return SeenTrial{{}, {std::nan("")}, {}, State::kFail}; }) < 0.2);
  CHECK(share_below([](double) { return SeenTrial{{}, {0.5}, {0.5}, State::kPruned}; }) < 0.2);
  CHECK(share_below([](double) { return SeenTrial{{}, {0.5}, {0.5}, std::nullopt}; }) < 0.2);
  CHECK(share_below([](double) { return SeenTrial{{}, {0.9}, {0.9}, State::kComplete}; }) > 0.8);
}

TEST_CASE("a finite space is not repeated until all of it was tried") {
  const trials::Space space = {words("a", {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}),
                               range("b", DistributionKind::kIntUniform, 0, 6)};
  const auto sampler = make_tpe(space, 2, Goal::kMinimize, {});
  History history;
  std::set<std::string> seen;
  for (int n = 0; n < 21; ++n) {
    Params params = sampler->ask(n, 1, history).at(0);
    seen.insert(trials::to_text(params[0].second) + "," + trials::to_text(params[1].second));
    const double value = number(params[1].second);
    history.push_back({std::move(params), {value}, {value}, State::kComplete});
  }
  CHECK(seen.size() == 21);
  CHECK(sampler->ask(21, 1, history).size() == 1);
}

TEST_CASE("a trial of another program that lacks parameters is passed over") {
  History history = ended(20);
  history[3].params.pop_back();
  history[3].ended = State::kFail;
  CHECK(make_tpe(kMixed, 1, Goal::kMinimize, {})->ask(20, 2, history).size() == 2);
}

TEST_CASE("a space with nothing to choose is drawn from") {
  const trials::Space space = {range("x", DistributionKind::kUniform, 2, 2), words("y", {std::string("only")})};
  const auto sampler = make_tpe(space, 1, Goal::kMinimize, {});
  History history;
  for (int n = 0; n < 15; ++n) {
    Params params = sampler->ask(n, 1, history).at(0);
    CHECK(params == Params{{"x", 2.0}, {"y", std::string("only")}});
    history.push_back({std::move(params), {1.0}, {1.0}, State::kComplete});
  }
}

TEST_CASE("densities of kernels are what they say, by hand") {
  // One observation at 0.25 is as wide as the larger of the gaps to the ends, 0.75; beside it the whole scale's kernel.
  const trials::Space space = {range("x", DistributionKind::kUniform, 0, 1)};
  const Axes axes = {Axis(space[0].distribution)};
  const Parzen density(axes, {{axes[0].point_of(0.25)}});
  const auto phi = [](double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); };
  const auto cdf = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  const auto kernel = [&](double x, double mu, double sigma) {
    return phi((x - mu) / sigma) / sigma / (cdf((1 - mu) / sigma) - cdf(-mu / sigma));
  };
  for (const double x : {0.0, 0.1, 0.25, 0.7, 1.0}) {
    const double wanted = (kernel(x, 0.25, 0.75) + kernel(x, 0.5, 1)) / 2;
    CHECK(std::exp(density.log_density({axes[0].point_of(x)})) == Approx(wanted).epsilon(1e-12));
  }
  // Of three, the outermost are as wide as the gaps inwards, the one between as the larger; none below 1/5.
  const Parzen three(axes, {{axes[0].point_of(0.9)}, {axes[0].point_of(0.2)}, {axes[0].point_of(0.25)}});
  for (const double x : {0.0, 0.22, 0.6, 1.0}) {
    const double wanted = (kernel(x, 0.9, 0.65) + kernel(x, 0.2, 0.2) + kernel(x, 0.25, 0.65) + kernel(x, 0.5, 1)) / 4;
    CHECK(std::exp(three.log_density({axes[0].point_of(x)})) == Approx(wanted).epsilon(1e-12));
  }
  // Two categories, one observed: (1 + 1/2 * 1/2 * 2) ... over kernels: smoothing is categories over kernels = 1.
  const trials::Parameter two = words("c", {std::string("a"), std::string("b")});
  const Axes categories = {Axis(two.distribution)};
  const Parzen chosen(categories, {{categories[0].point_of(std::string("b"))}});
  CHECK(std::exp(chosen.log_density({categories[0].point_of(std::string("b"))})) == Approx((0.75 + 0.5) / 2));
  CHECK(std::exp(chosen.log_density({categories[0].point_of(std::string("a"))})) == Approx((0.25 + 0.5) / 2));
}

TEST_CASE("densities sum to one over the space, and draws follow them") {
  const History history = ended(35);
  Axes axes;
  for (const trials::Parameter& parameter : kMixed) axes.emplace_back(parameter.distribution);
  for (std::size_t axis : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    const Axes one = {axes[axis]};
    std::vector<Points> observed;
    for (const SeenTrial& trial : history) observed.push_back({one[0].point_of(trial.params[axis].second)});
    const Parzen density(one, observed);
    const auto choices = Choices::of(kMixed[axis].distribution);
    double sum = 0, low = 0;
    for (std::int64_t i = 0; i < choices->count(); ++i) {
      const double p = std::exp(density.log_density({one[0].point_of(choices->value(i))}));
      sum += p;
      if (i < choices->count() / 3) low += p;
    }
    CHECK(sum == Approx(1).epsilon(1e-9));
    int drawn_low = 0;
    CountedRandom random(1, Stream::kTpe, 0);
    for (int i = 0; i < 4000; ++i) {
      const ParamValue value = one[0].value_at(density.sample(random)[0]);
      for (std::int64_t n = 0; n < choices->count() / 3; ++n) drawn_low += choices->value(n) == value ? 1 : 0;
    }
    CHECK(std::abs(drawn_low / 4000.0 - low) < 5 * std::sqrt(0.25 / 4000));
  }
}
