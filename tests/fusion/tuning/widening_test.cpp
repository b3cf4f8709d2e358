// Which chunks are worth timing, by what narrower ones took.

#include "fusion/tuning/widening.hpp"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

namespace hfta::fusion {
namespace {

struct Case {
  const char* what;
  int width;
  std::vector<std::pair<int, double>> timed;  // chunk, seconds of a slot's step
  int chunk;                                  // that may be next
  bool worthwhile;
};

}  // namespace

TEST_CASE("a wider chunk is timed where it may win") {
  const std::vector<Case> cases = {
      {"nothing is known", 32, {}, 1, true},
      {"slots that share all they do", 32, {{1, 8.0}, {2, 4.0}, {4, 2.0}}, 8, true},
      {"one that gained nothing may have been disturbed", 32, {{1, 8.0}, {2, 8.1}}, 4, true},
      {"two that gained nothing", 32, {{1, 8.0}, {2, 8.1}, {4, 8.2}}, 8, false},
      {"gains between that count", 32, {{1, 8.0}, {2, 8.1}, {4, 6.0}, {8, 6.1}}, 16, true},
      {"five doublings may catch up with what is 30 times as fast", 32, {{1, 1.0}, {1, 30.0}}, 2, true},
      {"and three with what is 10 times as fast, as timings err", 8, {{1, 1.0}, {1, 10.0}}, 2, true},
      {"but not with what is 11 times as fast", 8, {{1, 1.0}, {1, 11.0}}, 2, false},
      {"gains that are too small to catch up", 32, {{1, 1.0}, {1, 5.0}, {2, 4.5}}, 4, false},
      {"gains that are large enough", 32, {{1, 1.0}, {1, 5.0}, {2, 3.5}}, 4, true},
      {"no doubling is left to catch up with", 4, {{1, 1.0}, {1, 5.0}, {2, 2.6}}, 4, false},
      {"the next way begins anew", 32, {{1, 8.0}, {2, 8.1}, {4, 8.2}}, 1, true},
      {"a chunk of 2 gains on the slower chunk of 1", 32, {{1, 1.0}, {1, 5.0}, {1, 3.4}, {2, 3.4}}, 4, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Widening widening(c.width);
    for (const auto& [chunk, seconds] : c.timed) widening.note(chunk, seconds);
    CHECK(widening.is_worthwhile(c.chunk) == c.worthwhile);
  }
}

}  // namespace hfta::fusion
