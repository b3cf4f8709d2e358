#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

using namespace hfta;

TEST_CASE("nearest finds the likely typo and nothing else") {
  const std::vector<std::string> keys = {"learning_rate", "epochs", "optimizer", "loss", "lr"};
  struct Case {
    std::string word, wanted;
  };
  const std::vector<Case> cases = {
      {"epoch", "epochs"},
      {"epohcs", "epochs"},
      {"optimiser", "optimizer"},
      {"learning-rate", "learning_rate"},
      {"los", "loss"},
      {"lrr", "lr"},
      {"loss", "loss"},
      {"banana", ""},
      {"completely_other", ""},
      {"", ""},
      {"x", ""},
  };
  for (const Case& c : cases) {
    INFO(c.word);
    CHECK(nearest(c.word, keys) == c.wanted);
  }
  CHECK(nearest("epochs", {}).empty());
  CHECK(nearest("ab1", {"ab2", "ab3"}) == "ab2");  // a tie goes to the first
}

TEST_CASE("suggestion names the typo, or else what is valid") {
  CHECK(suggestion("epoch", {"epochs", "loss"}) == "; did you mean 'epochs'?");
  CHECK(suggestion("banana", {"epochs", "loss"}) == "; valid: epochs, loss");
  CHECK(suggestion("banana", {}).empty());
}

TEST_CASE("shortest reads back as the same number") {
  struct Case {
    double value;
    std::string wanted;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Case> cases = {
      {0.1, "0.1"},
      {3, "3"},
      {-0.5, "-0.5"},
      {1e-4, "1e-04"},
      {1e22, "1e+22"},
      {inf, "inf"},
      {-inf, "-inf"},
      {std::nan(""), "nan"},
      {0, "0"},
      {0.1 + 0.2, "0.30000000000000004"},
      {-std::nan(""), "nan"},
  };
  for (const Case& c : cases) CHECK(shortest(c.value) == c.wanted);
  for (const double x : {1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789, -2.2250738585072014e-308}) {
    CHECK(std::strtod(shortest(x).c_str(), nullptr) == x);
  }
}

TEST_CASE("join separates every pair, empty words too") {
  CHECK(join({}).empty());
  CHECK(join({"a"}) == "a");
  CHECK(join({"a", "b", "c"}) == "a, b, c");
  CHECK(join({"", "b", ""}, "|") == "|b|");
}

TEST_CASE("printable disarms control characters and keeps the rest") {
  using namespace std::string_literals;
  struct Case {
    std::string text, wanted;
  };
  const std::vector<Case> cases = {
      {"plain words", "plain words"},
      {"a\nb\tc", "a\\x0ab\\x09c"},
      {"\x1b[2J", "\\x1b[2J"},
      {"nul\0end"s, "nul\\x00end"},
      {"\x7f", "\\x7f"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"\xc2\x9b"
       "2J",
       "\\xc2\\x9b2J"},          // U+009B is an 8-bit escape sequence introducer
      {"\xc2\xa0", "\xc2\xa0"},  // the no-break space is none
      {"\xc2", "\xc2"},
  };
  for (const Case& c : cases) CHECK(printable(c.text) == c.wanted);
}
