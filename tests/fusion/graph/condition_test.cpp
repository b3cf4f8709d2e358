#include "fusion/graph/condition.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.hpp"
#include "fusion/graph.hpp"

namespace hfta::fusion {
namespace {

TEST_CASE("conditions on the batch are read as Python reads them") {
  const auto [condition, n, wanted] = GENERATE(table<std::string, std::int64_t, bool>({
      {"(N % 2) == 0", 4, true},
      {"(N % 2) == 0", 7, false},
      {"N < 1000", 999, true},
      {"2 <= N and N <= 9", 10, false},
      {"2 <= N <= 9", 9, true},
      {"2 <= N < 9 != 8", 8, true},
      {"not N == 4 or N > 3", 4, true},
      {"not (N == 4 or N > 3)", 4, false},
      {"not not N", 3, true},
      {"3*N - 2 >= 10", 4, true},
      {"-N + 5 == 1", 4, true},
      {"-2**2 == -4 and 2**3**2 == 512", 1, true},
      {"N // 2 * 2 != N", 5, true},
      {"N / 2 == 2.5", 5, true},
      {"-N // 2 == -3", 5, true},
      {"Max(1, N) == N and Min(9223372036854775807, N, 3) == 3", 5, true},
      {"math.floor(N / 2) == 2", 5, true},
      {"True and not False", 5, true},
      {"9223372036854775807 != 9223372036854775806", 5, true},
  }));
  INFO(condition << " of " << n);
  CHECK(holds(condition, n) == wanted);
}

TEST_CASE("what is no condition is refused") {
  const std::string deep(100'000, '(');
  for (const std::string& text :
       {std::string(), std::string("N =="), std::string("N == 1)"), std::string("(N"), std::string("order"),
        std::string("N2 == 1"), std::string("__import__('os')"), std::string("L['x'].size()[0] == 1"),
        std::string("N % 0 == 0"), std::string("N * 9223372036854775807 > 0"), std::string("max() == 1"),
        std::string("1.5.2 == 1"), deep, std::string(100'000, '-') + "N ** " + std::string(10, '*')}) {
    INFO(text.substr(0, 40));
    CHECK_THROWS_AS(holds(text, 4), Error);
  }
}

TEST_CASE("limits name what a batch breaks") {
  const BatchLimits limits{2, {"(N % 2) == 0", "N < 100"}};
  CHECK(limits.broken_by(1) == "at least 2 samples");
  CHECK(limits.broken_by(3) == "(N % 2) == 0");
  CHECK(limits.broken_by(100) == "N < 100");
  CHECK(limits.allow(98));
  CHECK(BatchLimits().allow(1));
}

}  // namespace
}  // namespace hfta::fusion
