#include "search/methods.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "base/error.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials;
using namespace hfta::trials::testing;
using Kind = DistributionKind;

namespace {

const std::set<std::string> kNothing;

Space rates() { return {{"lr", bounded(Kind::kUniform, 0, 1)}, {"wd", bounded(Kind::kUniform, 0, 1)}}; }

void make(const std::string& name, const MethodOptions& options, const Space& space) {
  static_cast<void>(make_sampler(method(name), options, {space, Goal::kMinimize, 1, kNothing}));
}

}  // namespace

TEST_CASE("a sampler is made with every method's defaults, and with the ends of each number's range") {
  for (const Method& one : methods()) {
    if (one.needs_list) continue;
    CAPTURE(one.name);
    CHECK_NOTHROW(make(one.name, {}, rates()));
    for (const MethodField& field : one.fields) {
      CAPTURE(field.name);
      for (const int number : {field.least - 1, field.most == std::numeric_limits<int>::max() ? 0 : field.most + 1}) {
        MethodOptions options;
        if (number == field.of(options) || (number >= field.least && number <= field.most)) continue;
        field.of(options) = number;
        CHECK_THROWS_WITH(make(one.name, options, rates()), Catch::Contains(std::string(one.name) + "." + field.name));
      }
    }
  }
}

TEST_CASE("a sampler is not made for a space that is none, nor of methods that there are not") {
  struct Case {
    const char* says;
    std::function<void(Space&)> spoil;
  };
  const Case cases[] = {
      {"lr: found it twice", [](Space& space) { space[1].name = "lr"; }},
      {"lr: min: found 2", [](Space& space) { space[0].distribution.min = 2; }},
      {"wd: found a condition on 'gone'",
       [](Space& space) {
         space[1].when = {{"gone", {0.5}}};
       }},
      {"wd: found conditions in a circle",
       [](Space& space) {
         space[1].when = {{"wd", {0.5}}};
       }},
      {"found conditions in a circle",
       [](Space& space) {
         space[0].when = {{"wd", {0.5}}}, space[1].when = {{"lr", {0.5}}};
       }},
  };
  for (const Case& c : cases) {
    Space space = rates();
    c.spoil(space);
    CAPTURE(c.says);
    CHECK_THROWS_WITH(make("random", {}, space), Catch::Contains(c.says));
  }
  MethodOptions options;
  options.sampler = "guess";
  CHECK_THROWS_WITH(make("hyperband", options, rates()), Catch::Contains("found 'guess'"));
  CHECK_THROWS_AS(method("guess"), hfta::Error);
}
