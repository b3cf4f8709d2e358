#include <catch2/catch.hpp>
#include <limits>
#include <tuple>

#include "base/error.hpp"
#include "search/scheduler/bracket_layout.hpp"

using namespace hfta::search;

namespace {

using Brackets = std::vector<std::vector<Rung>>;

std::string refusal(const HyperbandOptions& options, const std::vector<int>& caps) {
  try {
    (void)BracketLayout(options, caps);
  } catch (const hfta::Error& error) {
    CHECK(error.kind() == hfta::ErrorKind::kConfig);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("Brackets are those of Algorithm 1") {
  struct Case {
    HyperbandOptions options;
    Brackets wanted;
  };
  const std::vector<Case> cases = {
      {{1, 81, 3},
       {{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}},
        {{34, 3}, {11, 9}, {3, 27}, {1, 81}},
        {{15, 9}, {5, 27}, {1, 81}},
        {{8, 27}, {2, 81}},
        {{5, 81}}}},
      {{1, 27, 3}, {{{27, 1}, {9, 3}, {3, 9}, {1, 27}}, {{12, 3}, {4, 9}, {1, 27}}, {{6, 9}, {2, 27}}, {{4, 27}}}},
      {{1, 1, 3}, {{{1, 1}}}},
      {{1, 2, 3}, {{{1, 2}}}},
      {{10, 10, 2}, {{{1, 10}}}},
      {{2, 27, 3}, {{{9, 3}, {3, 9}, {1, 27}}, {{5, 9}, {1, 27}}, {{3, 27}}}},  // 2 * 3^3 is beyond 27
      {{1, 100, 3},                                                             // no power of eta: r_i rounds down
       {{{81, 1}, {27, 3}, {9, 11}, {3, 33}, {1, 100}},
        {{34, 3}, {11, 11}, {3, 33}, {1, 100}},
        {{15, 11}, {5, 33}, {1, 100}},
        {{8, 33}, {2, 100}},
        {{5, 100}}}},
      {{1, 8, 2}, {{{8, 1}, {4, 2}, {2, 4}, {1, 8}}, {{6, 2}, {3, 4}, {1, 8}}, {{4, 4}, {2, 8}}, {{4, 8}}}},
  };
  for (const Case& c : cases) {
    INFO("R=" << c.options.max_epochs << " min=" << c.options.min_epochs << " eta=" << c.options.eta);
    CHECK(hyperband_brackets(c.options) == c.wanted);
  }
}

// Against the definition in rational arithmetic: n = ceil((s_max+1)/(s+1) eta^s), n_i = floor(n / eta^i),
// r_i = floor(R eta^i / eta^s).
TEST_CASE("Brackets are exact for every usual size") {
  for (const std::int64_t most : {9, 27, 81, 243, 729, 3125}) {
    for (std::int64_t eta = 2; eta <= 5; ++eta) {
      INFO("R=" << most << " eta=" << eta);
      std::int64_t highest = 0;
      std::vector<std::int64_t> power = {1};
      for (; power.back() * eta <= most; ++highest) power.push_back(power.back() * eta);
      const Brackets found = hyperband_brackets({1, static_cast<int>(most), static_cast<int>(eta)});
      REQUIRE(found.size() == power.size());
      for (std::int64_t s = highest; s >= 0; --s) {
        const std::vector<Rung>& rungs = found[static_cast<std::size_t>(highest - s)];
        REQUIRE(rungs.size() == static_cast<std::size_t>(s) + 1);
        const std::int64_t wanted = (highest + 1) * power[static_cast<std::size_t>(s)];  // over s + 1
        const std::int64_t first = rungs.front().trials;
        CHECK(first * (s + 1) >= wanted);
        CHECK((first - 1) * (s + 1) < wanted);
        for (std::int64_t i = 0; i <= s; ++i) {
          const Rung& rung = rungs[static_cast<std::size_t>(i)];
          const std::int64_t shrunk = power[static_cast<std::size_t>(i)], left = power[static_cast<std::size_t>(s - i)];
          CHECK(rung.trials * shrunk <= first);
          CHECK((rung.trials + 1) * shrunk > first);
          CHECK(rung.epochs * left <= most);
          CHECK((rung.epochs + 1) * left > most);
        }
      }
    }
  }
}

TEST_CASE("No bracket is lost to a logarithm") {
  for (int eta = 2; eta <= 10; ++eta) {
    std::size_t wanted = 1;
    for (std::int64_t r = 1; r <= std::numeric_limits<int>::max(); r *= eta, ++wanted) {
      INFO("R=" << r << " eta=" << eta);
      CHECK(hyperband_brackets({1, static_cast<int>(r), eta}).size() == wanted);
      if (r > 1) CHECK(hyperband_brackets({1, static_cast<int>(r - 1), eta}).size() == wanted - 1);
    }
  }
  CHECK(hyperband_brackets({1, 243, 3}).size() == 6);
}

TEST_CASE("Passes have the known sizes and costs") {
  struct Case {
    HyperbandOptions options;
    int trials;
    std::int64_t epochs;
  };
  const std::vector<Case> cases = {{{1, 27, 3}, 49, 357}, {{1, 81, 3}, 143, 1581}, {{1, 1, 3}, 1, 1}};
  for (const Case& c : cases) {
    const BracketLayout one(c.options, {}), three(c.options, {3 * c.trials});
    CHECK(one.capacity() == c.trials);
    CHECK(one.cost(c.trials) == c.epochs);
    CHECK(one.cost(3 * c.trials) == c.epochs);  // no further than its capacity
    CHECK(three.capacity() == 3 * c.trials);
    CHECK(three.cost(3 * c.trials) == 3 * c.epochs);
    CHECK(three.cost(2 * c.trials) == 2 * c.epochs);
    CHECK(three.cost(0) == 0);
  }
  const std::vector<std::int64_t> costs = {297, 276, 279, 324, 405};  // survivors go on: notes on R=81
  const BracketLayout layout({1, 81, 3}, {});
  std::int64_t draws = 0, cost = 0;
  for (std::size_t kind = 0; kind < costs.size(); ++kind) {
    draws += hyperband_brackets({1, 81, 3})[kind].front().trials;
    cost += costs[kind];
    CHECK(layout.cost(draws) == cost);
  }
}

TEST_CASE("Cost grows with every draw") {
  for (const std::vector<int>& caps : {std::vector<int>{}, {98}, {30, 100, 177}}) {
    const BracketLayout layout({1, 27, 3}, caps);
    for (int n = 0; n < layout.capacity(); ++n) CHECK(layout.cost(n + 1) > layout.cost(n));
  }
}

TEST_CASE("Draws fill brackets in order, and caps cut them") {
  // kind, first, size of the bracket that each draw is in; R=27: 27, 12, 6, 4.
  struct Case {
    std::vector<int> caps;
    std::vector<std::tuple<int, int, int>> wanted;
  };
  const std::vector<Case> cases = {
      {{}, {{0, 0, 27}, {1, 27, 12}, {2, 39, 6}, {3, 45, 4}}},
      {{49}, {{0, 0, 27}, {1, 27, 12}, {2, 39, 6}, {3, 45, 4}}},
      {{1}, {{0, 0, 1}}},
      {{30}, {{0, 0, 27}, {1, 27, 3}}},
      {{51}, {{0, 0, 27}, {1, 27, 12}, {2, 39, 6}, {3, 45, 4}, {0, 49, 2}}},
      {{30, 98},  // the cut bracket stays cut, the next one begins
       {{0, 0, 27}, {1, 27, 3}, {2, 30, 6}, {3, 36, 4}, {0, 40, 27}, {1, 67, 12}, {2, 79, 6}, {3, 85, 4}, {0, 89, 9}}},
      {{27, 30, 30, 31, 41}, {{0, 0, 27}, {1, 27, 3}, {2, 30, 1}, {3, 31, 4}, {0, 35, 6}}},
      {{48, 49}, {{0, 0, 27}, {1, 27, 12}, {2, 39, 6}, {3, 45, 3}, {0, 48, 1}}},
  };
  for (const Case& c : cases) {
    const BracketLayout layout({1, 27, 3}, c.caps);
    std::int64_t bracket = 0;
    int draw = 0;
    for (const auto& [kind, first, size] : c.wanted) {
      CHECK(draw == first);
      for (int i = 0; i < size; ++i, ++draw) {
        const BracketPosition place = layout.place(draw);
        CHECK(place.kind == static_cast<std::size_t>(kind));
        CHECK(place.first == first);
        CHECK(place.size == size);
        CHECK(place.bracket == bracket);
      }
      ++bracket;
    }
    CHECK(layout.capacity() == draw);
    CHECK_THROWS_AS(layout.place(draw), hfta::Error);
    CHECK_THROWS_AS(layout.place(-1), hfta::Error);
  }
}

TEST_CASE("A cut bracket keeps its rungs by the floor rule, and one trial at least") {
  const auto rungs = [](int cap) {
    const BracketLayout layout({1, 27, 3}, {cap});
    return layout.rungs(layout.place(cap - 1));
  };
  CHECK(rungs(27) == std::vector<Rung>{{27, 1}, {9, 3}, {3, 9}, {1, 27}});
  CHECK(rungs(26) == std::vector<Rung>{{26, 1}, {8, 3}, {2, 9}, {1, 27}});
  CHECK(rungs(2) == std::vector<Rung>{{2, 1}, {1, 3}, {1, 9}, {1, 27}});
  CHECK(rungs(1) == std::vector<Rung>{{1, 1}, {1, 3}, {1, 9}, {1, 27}});
  CHECK(rungs(27 + 9) == std::vector<Rung>{{9, 3}, {3, 9}, {1, 27}});
  CHECK(rungs(27 + 12 + 6 + 1) == std::vector<Rung>{{1, 27}});
}

TEST_CASE("A huge cap costs no memory and no time") {
  const int most = std::numeric_limits<int>::max();
  const BracketLayout layout({1, 27, 3}, {most});
  CHECK(layout.capacity() == most);
  CHECK(layout.place(most - 1).size >= 1);
  CHECK(layout.cost(49LL * 40'000'000) == 357LL * 40'000'000);
  const BracketLayout wide({1, most, 2}, {});  // a pass larger than an int holds
  CHECK(wide.capacity() == most);
}

TEST_CASE("Impossible options and caps are refused") {
  struct Case {
    HyperbandOptions options;
    std::vector<int> caps;
    std::string wanted;
  };
  const std::vector<Case> cases = {
      {{0, 27, 3}, {}, "hyperband: min_epochs: found 0, wanted at least 1"},
      {{5, 4, 3}, {}, "hyperband: max_epochs: found 4, wanted at least min_epochs = 5"},
      {{1, 27, 1}, {}, "hyperband: eta: found 1, wanted at least 2"},
      {{1, 27, 3}, {0}, "run_cap: found 0, wanted at least 1"},
      {{1, 27, 3}, {-5}, "run_cap: found -5, wanted at least 1"},
      {{1, 27, 3}, {50, 49}, "run_cap: found 49, wanted at least 50"},
      {{1, 27, 3}, {50, 50, 51}, "accepted"},
  };
  for (const Case& c : cases) CHECK(refusal(c.options, c.caps) == c.wanted);
}
