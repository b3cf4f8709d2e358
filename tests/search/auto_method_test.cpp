// What `method: auto` chooses, by what is known of a study.

#include "search/auto_method.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace hfta;
using namespace hfta::search;
using trials::Distribution;
using trials::DistributionKind;

namespace {

trials::Parameter list(std::string name, int values) {
  Distribution d;
  d.kind = DistributionKind::kCategorical;
  for (int i = 0; i < values; ++i) d.values.emplace_back(std::int64_t{i});
  return {std::move(name), std::move(d)};
}

trials::Parameter range(std::string name) {
  Distribution d;
  d.kind = DistributionKind::kUniform;
  return {std::move(name), std::move(d)};
}

const trials::Space kNumbers = {range("lr"), range("dropout")};
const trials::Space kMixed = {range("lr"), list("hidden", 3)};
const trials::Space kLists = {list("a", 3), list("b", 4)};

StudyOutline outline(const trials::Space& space, std::optional<int> configurations,
                     std::optional<std::int64_t> trial_epochs = {}, std::optional<int> width = {}) {
  static const std::vector<Constraint> none;
  StudyOutline study{space, none};
  study.epochs = 27;
  study.configurations = configurations;
  study.trial_epochs = trial_epochs;
  study.width = width;
  return study;
}

struct Case {
  StudyOutline study;
  std::string method, stopping, reason;  // words of the reason
};

}  // namespace

TEST_CASE("auto chooses by space, budget and width") {
  StudyOutline stops = outline(kMixed, std::nullopt, 2700);
  stops.stops = true;
  StudyOutline short_trials = outline(kMixed, std::nullopt, 2700);
  short_trials.epochs = 2;
  StudyOutline repeated = outline(kNumbers, 60, std::nullopt, 320);
  repeated.repetitions = 5;
  StudyOutline medium_trials = outline(kMixed, std::nullopt, 800);
  medium_trials.epochs = 9;
  StudyOutline several = outline(kMixed, std::nullopt, 2700);
  several.repetitions = 3;
  const std::vector<Constraint> ordered = {Constraint::parse("hidden <= lr * 10")};
  StudyOutline constrained{kMixed, ordered};
  constrained.epochs = 27;
  constrained.trial_epochs = 2700;
  trials::Space dependent = {list("optimizer", 2), range("momentum")};
  dependent[1].when = {{"optimizer", {std::int64_t{0}}}};
  const std::vector<Case> cases = {
      {outline(kLists, 12), "grid", "", "12 configurations"},
      {outline(kLists, 11), "@learns", "", ""},
      {outline(kLists, std::nullopt, 5400), "freeze_thaw", "", ""},
      {outline(kLists, std::nullopt, 5430), "tpe", "asha", "1006 configurations"},
      {outline(kNumbers, 10), "sobol", "", "10 configurations are too few"},
      {outline(kNumbers, 11), "@learns", "", ""},
      {outline(kNumbers, 64, std::nullopt, 64), "sobol", "", "all 64 configurations begin at once"},
      {outline(kNumbers, 64, std::nullopt, 63), "@learns", "", ""},
      {repeated, "sobol", "", "all 60 configurations begin at once"},
      {outline(kNumbers, 2000), "tpe", "", "2000 configurations"},
      {outline(kMixed, std::nullopt, 2700), "freeze_thaw", "", "learning curves"},
      {medium_trials, "@learns", "asha", "asha"},
      {several, "@learns", "asha", "asha"},
      {constrained, "@learns", "asha", "asha"},
      {outline(dependent, std::nullopt, 2700), "@learns", "asha", "asha"},
      {outline(kMixed, 100, 2700), "@learns", "", ""},
      {stops, "@learns", "", ""},
      {short_trials, "tpe", "", "1350 configurations"},
      {outline(kMixed, std::nullopt), "freeze_thaw", "", ""},
  };
  for (const Case& c : cases) {
    const MethodChoice choice = choose_method(c.study);
    CAPTURE(choice.method, choice.reason, c.reason);
    if (c.method == "@learns") {
      CHECK((choice.method == "gp" || choice.method == "tpe"));
    } else {
      CHECK(choice.method == c.method);
    }
    CHECK((choice.stopping ? choice.stopping->rule : "") == c.stopping);
    CHECK_THAT(choice.reason, Catch::Contains(c.reason));
    CHECK_FALSE(choice.reason.empty());
  }
}

TEST_CASE("auto counts spaces without overflow, and takes a space of one point") {
  trials::Space huge;
  for (int i = 0; i < 100; ++i) huge.push_back(list("p" + std::to_string(i), 1000));
  CHECK(choose_method(outline(huge, 100)).method != "grid");
  const trials::Space point = {list("lr", 1)};
  CHECK(choose_method(outline(point, 1)).method == "grid");
  CHECK(choose_method(outline(point, 1)).reason.starts_with("the space has 1 configuration,"));
  CHECK(choose_method(outline({}, 5)).method == "grid");
}

TEST_CASE("auto counts the configurations that conditions and constraints leave, and takes no value of probability 0") {
  trials::Space depends = {list("a", 3), list("b", 4), list("c", 2)};
  depends[1].when = {{"a", {std::int64_t{0}}}};
  depends[2].when = {{"b", {std::int64_t{0}, std::int64_t{1}}}};
  // b applies beside a = 0, c beside two of its values: 2 * 2 + 2 + 2.
  CHECK(choose_method(outline(depends, 8)).reason.starts_with("the space has 8 configurations"));
  CHECK(choose_method(outline(depends, 7)).method != "grid");
  const std::vector<Constraint> ordered = {Constraint::parse("a <= b")};
  StudyOutline pairs{kLists, ordered};
  pairs.configurations = 9;
  CHECK(choose_method(pairs).reason.starts_with("the space has 9 configurations"));
  pairs.configurations = 8;
  CHECK(choose_method(pairs).method != "grid");
  trials::Space never = {list("a", 3)};
  never[0].distribution.probabilities = {0.5, 0.5, 0};
  CHECK(choose_method(outline(never, 12)).method == "gp");
}
