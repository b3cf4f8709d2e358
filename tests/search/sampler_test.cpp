#include "search/sampler.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/error.hpp"
#include "tests/trials/distributions.hpp"

using namespace hfta::search;
using namespace hfta::trials::testing;
using hfta::trials::Params;
using hfta::trials::Space;
using Kind = DistributionKind;

namespace {

// "a=1 b=x"
std::string text_of(const Params& params) {
  std::string text;
  for (const auto& [name, value] : params)
    text += (text.empty() ? "" : " ") + name + "=" + hfta::trials::to_text(value);
  return text;
}

std::vector<std::string> texts_of(const std::vector<Params>& all) {
  std::vector<std::string> texts;
  for (const Params& params : all) texts.push_back(text_of(params));
  return texts;
}

const Space kMixed = {{"lr", bounded(Kind::kLogUniformValues, 1e-4, 1)},
                      {"wd", categorical({integer(0), 1e-4, 1e-3})},
                      {"n", bounded(Kind::kIntUniform, 1, 5)},
                      {"c", constant(word("x"))}};
const Space kFinite = {{"a", bounded(Kind::kIntUniform, 1, 4)},
                       {"b", categorical({word("x"), word("y"), word("z")})},
                       {"c", constant(true)}};
const Space kHuge = {{"a", bounded(Kind::kIntUniform, 1, 3000)}, {"b", bounded(Kind::kIntUniform, 1, 3000)}};

}  // namespace

TEST_CASE("Grid walks every combination, the last parameter fastest") {
  const auto grid = make_grid(kFinite);
  CHECK(grid->size() == 12);
  const std::vector<std::string> wanted = {"a=1 b=x c=true", "a=1 b=y c=true", "a=1 b=z c=true", "a=2 b=x c=true",
                                           "a=2 b=y c=true", "a=2 b=z c=true", "a=3 b=x c=true", "a=3 b=y c=true",
                                           "a=3 b=z c=true", "a=4 b=x c=true", "a=4 b=y c=true", "a=4 b=z c=true"};
  CHECK(texts_of(grid->ask(0, 12, {})) == wanted);
  CHECK(texts_of(grid->ask(5, 2, {})) == std::vector<std::string>{wanted[5], wanted[6]});
  CHECK(texts_of(grid->ask(10, 100, {})) == std::vector<std::string>{wanted[10], wanted[11]});
  CHECK(grid->ask(12, 1, {}).empty());
  CHECK(grid->ask(1000, 1, {}).empty());
  CHECK(grid->ask(0, 0, {}).empty());
}

TEST_CASE("Grid without choices is one trial") {
  CHECK(make_grid({})->size() == 1);
  CHECK(make_grid({})->ask(0, 5, {}).size() == 1);
  CHECK(texts_of(make_grid({{"c", constant(integer(3))}})->ask(0, 5, {})) == std::vector<std::string>{"c=3"});
}

TEST_CASE("Grid refuses what has no list, and more than can be counted") {
  const auto refusal = [](const Space& space) {
    try {
      (void)make_grid(space);
    } catch (const hfta::Error& error) {
      CHECK(error.kind() == hfta::ErrorKind::kConfig);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal(kMixed).find("lr: found distribution log_uniform_values, wanted a list") == 0);
  CHECK(refusal({{"n", bounded(Kind::kIntUniform, 0, 1'000'000)}}).find("n: found distribution int_uniform, ") == 0);
  const Space wide(8, {"n", bounded(Kind::kIntUniform, 1, 1000)});
  CHECK(refusal(wide).find("the grid has more than 2^63 combinations") == 0);
}

TEST_CASE("A random draw depends on seed and number alone") {
  const std::vector<Space> spaces = {kMixed, kFinite, kHuge};
  for (const Space& space : spaces) {
    const auto all = make_random(space, 5)->ask(0, 200, {});
    REQUIRE(all.size() == 200);
    const auto other = make_random(space, 5);  // asked in another order, and in other portions
    for (const auto& [first, k] : std::vector<std::pair<int, int>>{{150, 50}, {3, 1}, {0, 7}, {100, 100}, {3, 1}}) {
      const std::vector<Params> wanted(all.begin() + first, all.begin() + first + k);
      CHECK(texts_of(other->ask(first, k, {})) == texts_of(wanted));
    }
    CHECK(texts_of(make_random(space, 6)->ask(0, 200, {})) != texts_of(all));
    CHECK(make_random(space, 5)->size() == std::nullopt);
    for (const Params& params : all) {
      REQUIRE(params.size() == space.size());
      for (std::size_t i = 0; i < space.size(); ++i) CHECK(params[i].first == space[i].name);
    }
  }
}

TEST_CASE("Parameters are drawn independently of one another") {
  const Space space = {{"a", bounded(Kind::kUniform, 0, 1)}, {"b", bounded(Kind::kUniform, 0, 1)}};
  double product = 0;
  constexpr int kDraws = 5000;
  for (const Params& p : make_random(space, 1)->ask(0, kDraws, {})) {
    product += (std::get<double>(p[0].second) - 0.5) * (std::get<double>(p[1].second) - 0.5) / kDraws;
  }
  CHECK(product * 12 == Approx(0).margin(0.06));  // the correlation
}

TEST_CASE("A finite space is tried out before a configuration comes again") {
  const auto sampler = make_random(kFinite, 9);
  std::vector<std::vector<std::string>> passes;
  for (int pass = 0; pass < 4; ++pass) {
    passes.push_back(texts_of(sampler->ask(pass * 12, 12, {})));
    CHECK(std::set<std::string>(passes.back().begin(), passes.back().end()).size() == 12);
  }
  CHECK(passes[0] != passes[1]);  // each pass in an order of its own
  CHECK(passes[0] != texts_of(make_grid(kFinite)->ask(0, 12, {})));
  CHECK(texts_of(make_random(kFinite, 9)->ask(36, 12, {})) == passes[3]);
}

TEST_CASE("A large finite space does not repeat either") {
  // 10,000 draws of 9 million (or 2 million plus one) would repeat a few by chance.
  for (const Space& space : {kHuge, Space{{"seed", bounded(Kind::kIntUniform, 0, 2'000'000)}},
                             Space{{"seed", bounded(Kind::kIntUniform, 1, 300'000)},
                                   {"w", categorical({word("a"), word("1")})},
                                   {"q", bounded(Kind::kQUniform, 0, 1, 0.1)}}}) {
    const auto texts = texts_of(make_random(space, 3)->ask(0, 10'000, {}));
    CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == 10'000);
  }
}

TEST_CASE("Uneven weights do not bring a configuration twice") {
  const Distribution uneven = categorical({word("usual"), word("rare")}, {1 - 1e-12, 1e-12});
  const Space small = {{"w", uneven}, {"v", uneven}, {"n", bounded(Kind::kIntUniform, 1, 20)}};  // shuffled: 80
  const Space large(21, {"w", uneven});  // drawn: of 2^21, one has nearly all the weight
  for (const Space& space : {small, large}) {
    const auto texts = texts_of(make_random(space, 3)->ask(0, 80, {}));
    CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == 80);
  }
  for (const std::string& text : texts_of(make_random(small, 3)->ask(0, 20, {})))
    CHECK(text.find("w=usual v=usual") == 0);
  CHECK(texts_of(make_random(large, 3)->ask(0, 1, {})).front().find("rare") == std::string::npos);
}

TEST_CASE("First draws follow the probabilities, and the impossible is never drawn") {
  const Space space = {{"a", categorical({word("x"), word("never"), word("y")}, {0.2, 0, 0.8})},
                       {"b", bounded(Kind::kQUniform, 0, 2, 1, true)}};  // weights 1, 2, 1
  std::map<std::string, int> counts;
  constexpr int kSeeds = 8000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto texts = texts_of(make_random(space, static_cast<std::uint64_t>(seed))->ask(0, 6, {}));
    CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == 6);
    ++counts[texts.front()];
  }
  const std::map<std::string, double> wanted = {{"a=x b=0", 0.05}, {"a=x b=1", 0.1}, {"a=x b=2", 0.05},
                                                {"a=y b=0", 0.2},  {"a=y b=1", 0.4}, {"a=y b=2", 0.2}};
  for (const auto& [text, p] : wanted) {
    INFO(text);
    CHECK(std::abs(counts[text] - kSeeds * p) < 4.5 * std::sqrt(kSeeds * p * (1 - p)));
  }
}

TEST_CASE("Constants alone, and no parameters at all, are drawn as often as asked") {
  CHECK(texts_of(make_random({{"c", constant(word("x"))}}, 1)->ask(2, 3, {})) ==
        std::vector<std::string>{"c=x", "c=x", "c=x"});
  CHECK(make_random({}, 1)->ask(0, 3, {}) == std::vector<Params>(3));
}
