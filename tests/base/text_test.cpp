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
  CHECK(nearest("AdamW", {"adam", "adamw"}) == "adamw");  // whatever its capitals
  CHECK(nearest("SGD", {"adam", "sgd"}) == "sgd");
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
      {"\xc2", "\\xc2"},         // cut short
      {"\x9b"
       "31m",
       "\\x9b"
       "31m"},  // the introducer as one byte, which terminals in an 8-bit locale obey
      {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
      {"\x1b]8;;http://a.b\x1b\\text", "\\x1b]8;;http://a.b\\x1b\\text"},
      {"a\r\nb", "a\\x0d\\x0ab"},
      {"\x08\x08", "\\x08\\x08"},
      {"a\xe2\x80\xae"
       "b",
       "a\\xe2\\x80\\xaeb"},                                             // U+202E turns what follows round
      {"\xe2\x81\xa6x\xe2\x81\xa9", "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9"},  // U+2066, U+2069
      {"\xe2\x80\x8f", "\\xe2\\x80\\x8f"},                               // U+200F
      {"\xd8\x9c", "\\xd8\\x9c"},                                        // U+061C
      {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},                               // U+2028, a line separator
      {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
      {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},  // U+E0041, a tag
      {"\xc0\x9b", "\\xc0\\x9b"},                    // overlong
      {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80", "\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"},
      {"\\x1b", "\\x1b"},
  };
  for (const Case& c : cases) {
    CHECK(printable(c.text) == c.wanted);
    CHECK(printable(printable(c.text)) == c.wanted);
  }
}

TEST_CASE("a spreadsheet takes no cell for a formula") {
  struct Case {
    std::string text, wanted;
  };
  const std::vector<Case> cases = {
      {"", ""},
      {"adam", "adam"},
      {"=1+1", "'=1+1"},
      {"=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"},
      {"+1+cmd", "'+1+cmd"},
      {"-2+3", "'-2+3"},
      {"@SUM(A1)", "'@SUM(A1)"},
      {"\t=1", "\\x09=1"},  // disarmed as a control character
      {"\r=1", "\\x0d=1"},
      {"\xef\xbc\x9d"
       "1",
       "'\xef\xbc\x9d"
       "1"},
      {"-", "'-"},
      {"+", "'+"},
      {"-0.5", "-0.5"},
      {"+3", "+3"},
      {"-1e-05", "-1e-05"},
      {"-inf", "-inf"},
      {"-1e999", "-1e999"},
      {"a=b", "a=b"},
      {"'=1", "'=1"},
      {"\x1b[31m=1", "\\x1b[31m=1"},
  };
  for (const Case& c : cases) CHECK(spreadsheet_cell(c.text) == c.wanted);
}
