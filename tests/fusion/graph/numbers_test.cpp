// Arithmetic on sizes, as Python has it.
#include "fusion/graph/numbers.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();

constexpr auto whole(std::int64_t n) { return n; }

struct Case {
  std::string op;
  std::vector<Number> args;
  Number wanted;
};

TEST_CASE("integers stay integers, and exact") {
  const std::vector<Case> cases = {
      {"add", {kMost - 1, whole(1)}, kMost},
      {"mul", {whole(3), true}, whole(3)},
      {"floordiv", {whole(-7), whole(2)}, whole(-4)},
      {"mod", {whole(-7), whole(2)}, whole(1)},
      {"mod", {kLeast, whole(-1)}, whole(0)},
      {"pow", {whole(3), whole(39)}, whole(4052555153018976267)},
      {"pow", {whole(2), whole(-1)}, 0.5},
      {"min", {kMost, kMost - 1}, kMost - 1},
      {"max", {kMost - 1, kMost}, kMost},
      {"max", {whole(3), 2.5}, whole(3)},
      {"max", {whole(2), 2.5}, 2.5},
      {"min", {whole(2), 2.0}, whole(2)},
      {"eq", {kMost, kMost - 1}, false},
      {"truediv", {whole(7), whole(2)}, 3.5},
      {"to_int", {-3.7}, whole(-3)},
      {"ceil", {3.2}, whole(4)},
      {"round", {2.5}, whole(2)},
      {"abs", {whole(-4)}, whole(4)},
  };
  for (const Case& c : cases) {
    CAPTURE(c.op);
    CHECK(number_of("number::" + c.op, c.args) == c.wanted);
  }
}

TEST_CASE("what leaves 64 bits, or divides by zero, is refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::string, std::vector<Number>>> cases = {
      {"add", {kMost, whole(1)}},
      {"sub", {kLeast, whole(1)}},
      {"mul", {kMost, whole(2)}},
      {"neg", {kLeast}},
      {"abs", {kLeast}},
      {"floordiv", {kLeast, whole(-1)}},
      {"pow", {whole(2), whole(63)}},
      {"floordiv", {whole(1), whole(0)}},
      {"floordiv", {1.0, 0.0}},
      {"mod", {whole(1), whole(0)}},
      {"mod", {1.0, whole(0)}},
      {"truediv", {whole(1), whole(0)}},
      {"to_int", {1e19}},
      {"ceil", {nan}},
      {"floor", {-1e300}},
  };
  for (const auto& [op, args] : cases) {
    CAPTURE(op);
    CHECK_THROWS_AS(number_of("number::" + op, args), Error);
  }
}

}  // namespace
}  // namespace hfta::fusion
