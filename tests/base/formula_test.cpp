// Formulas: values as Python computes them, IEEE 754 where Python throws, and what is refused.
#include "base/formula.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hfta {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

double known(const Formula::Term& term) {
  static const std::map<std::string, double> sums = {{"tp", 30},     {"fp", 10},      {"fn", 20},
                                                     {"loss", 0.75}, {"samples", 64}, {"x", -2.5},
                                                     {"zero", 0},    {"_a1", 7},      {"a.b", 11}};
  static const std::map<std::string, double> means = {{"loss", 0.5}, {"x", -0.25}};
  return (term.mean ? means : sums).at(term.name);
}

double value_of(const std::string& text) { return Formula::parse(text).value(known); }

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(Formula::parse(text));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("a formula has the value that Python gives it", "[formula]") {
  // Printed by Python 3.11: eval() with math's functions, mean(x) standing for -0.25 and mean(loss) for 0.5.
  const auto [text, wanted] = GENERATE_COPY(values<std::pair<std::string, double>>({
      {"7", 7.0},
      {"0.1", 0.1},
      {".5", 0.5},
      {"3.", 3.0},
      {"1e-3", 0.001},
      {"2.5E+2", 250.0},
      {"tp", 30.0},
      {"_a1", 7.0},
      {"1 + 2*3", 7.0},
      {"(1 + 2)*3", 9.0},
      {"7 - 3 - 2", 2.0},
      {"24 / 4 / 2", 3.0},
      {"24 / 4 * 2", 12.0},
      {"7 - 3 + 2", 6.0},
      {"2**3**2", 512.0},
      {"(2**3)**2", 64.0},
      {"-2**2", -4.0},
      {"(-2)**2", 4.0},
      {"2**-1", 0.5},
      {"2**-2**2", 0.0625},
      {"-3 - -3", 0.0},
      {"--3", 3.0},
      {"-+-3", 3.0},
      {"+-+3", -3.0},
      {"2*-3", -6.0},
      {"2/-4", -0.5},
      {"-x", 2.5},
      {"- -x**2", 6.25},
      {"10 - 2**3*4", -22.0},
      {"2*3**2", 18.0},
      {"1 - 2*3 - 4/8", -5.5},
      {"exp(0)", 1.0},
      {"exp(loss)", 2.117000016612675},
      {"log(tp)", 3.4011973816621555},
      {"log(exp(2.5))", 2.5},
      {"sqrt(2)", 1.4142135623730951},
      {"sqrt(tp)**2", 30.0},
      {"abs(x)", 2.5},
      {"abs(-x) - abs(x)", 0.0},
      {"min(tp, fp)", 10.0},
      {"max(tp, fp, fn)", 30.0},
      {"min(3, x, 1 - 4)", -3.0},
      {"max(min(tp, fp), min(fp, fn))", 10.0},
      {"2*tp / (2*tp + fp + fn)", 0.6666666666666666},
      {"tp / max(tp + fp, 1)", 0.75},
      {"mean(x)", -0.25},
      {"mean(x) + x", -2.75},
      {"mean(loss)*2", 1.0},
      {"-(mean(x) + mean(loss))", -0.25},
      {"loss / log(2)", 1.0820212806667227},
      {"exp(-loss)**0.5", 0.6872892787909722},
      {"(tp*60 - fp*fn) / sqrt((tp + fp)*(tp + fn)*(60 + fp)*(60 + fn))", 0.47809144373375745},
      {" ( tp )\t/ samples", 0.46875},
      {"mean ( x )", -0.25},
      {"exp (1)", 2.718281828459045},
      {"0.1 + 0.2", 0.30000000000000004},
      {"1e308*10", kInfinity},
      {"1/3*3", 1.0},
      {"7/2", 3.5},
      {"100*tp/samples", 46.875},
      {"((((((((((1))))))))))", 1.0},
  }));
  CAPTURE(text);
  CHECK_THAT(value_of(text), Catch::WithinRel(wanted, 1e-14) || Catch::WithinAbs(wanted, 0));
}

TEST_CASE("what Python refuses to compute is as IEEE 754 says", "[formula]") {
  const auto [text, wanted] = GENERATE_COPY(values<std::pair<std::string, double>>({
      {"1 / zero", kInfinity},
      {"-1 / zero", -kInfinity},
      {"1 / -zero", -kInfinity},
      {"zero / zero", kNan},
      {"zero / zero - zero / zero", kNan},
      {"1 / (1 / zero)", 0},
      {"zero ** -1", kInfinity},
      {"zero ** 0", 1},
      {"(-8) ** 0.5", kNan},
      {"log(zero)", -kInfinity},
      {"log(-1)", kNan},
      {"sqrt(-1)", kNan},
      {"exp(1000)", kInfinity},
      {"exp(-1000)", 0},
      {"10 ** 400", kInfinity},
      {"max(1 / zero, 3)", kInfinity},
  }));
  CAPTURE(text);
  const double found = value_of(text);
  CHECK((std::isnan(wanted) ? std::isnan(found) : found == wanted));
}

TEST_CASE("min and max are NaN if any of their numbers is", "[formula]") {
  const std::string text =
      GENERATE(as<std::string>(), "min(zero / zero, 1)", "min(1, zero / zero)", "max(zero / zero, 1)",
               "max(1, zero / zero)", "min(3, zero / zero, 1)", "max(1, 2, zero / zero, 3)");
  CAPTURE(text);
  CHECK(std::isnan(value_of(text)));
}

TEST_CASE("a formula lists what it reads, each once, in order", "[formula]") {
  const Formula formula = Formula::parse("2*tp / (2*tp + mean(tp) + fn) + a.b - tp");
  CHECK(formula.terms() == std::vector<Formula::Term>{{"tp", false}, {"tp", true}, {"fn", false}, {"a.b", false}});
  CHECK(formula.text() == "2*tp / (2*tp + mean(tp) + fn) + a.b - tp");
  CHECK(Formula::parse("1 + 2").terms().empty());
  // Functions' names are outputs' where nothing is called.
  CHECK(Formula::parse("exp + mean").terms() == std::vector<Formula::Term>{{"exp", false}, {"mean", false}});
}

TEST_CASE("what is no formula is refused", "[formula]") {
  struct Case {
    std::string text, message;
  };
  const auto [text, message] = GENERATE_COPY(values<Case>({
      {"", "found the end, wanted a number, a name or ("},
      {"   ", "found the end, wanted a number, a name or ("},
      {"1 +", "found the end, wanted a number, a name or ("},
      {"* 2", "found '* 2', wanted a number, a name or ("},
      {"a * / b", "found '/ b', wanted a number, a name or ("},
      {"a // b", "found '/ b', wanted a number, a name or ("},
      {"a ** * b", "found '* b', wanted a number, a name or ("},
      {"(a", "found the end, wanted )"},
      {"a)", "found ')', wanted an operator"},
      {"()", "found ')', wanted a number, a name or ("},
      {"a b", "found 'b', wanted an operator"},
      {"2 a", "found 'a', wanted an operator"},
      {"2a", "found '2a', wanted a number"},
      {"1.2.3", "found '1.2.3', wanted a number"},
      {"0x10", "found '0x10', wanted a number"},
      {"1_000", "found '1_000', wanted a number"},
      {"1e", "found '1e', wanted a number"},
      {"1e999", "found '1e999', wanted a number"},
      {".", "found '.', wanted a number"},
      {"a % b", "found '% b', wanted an operator"},
      {"a < b", "found '< b', wanted an operator"},
      {"a, b", "found ', b', wanted an operator"},
      {"a[0]", "found '[0]', wanted an operator"},
      {"'a'", "wanted a number, a name or ("},
      {"sin(a)", "found a function 'sin', wanted one of exp, log, sqrt, abs, min, max, mean"},
      {"__import__(a)", "found a function '__import__', wanted one of"},
      {std::string(100000, 'f') + "(a)",
       "found a function 'ffffffffffffffffffffffffffffffffffffffff... (100000 bytes)', w"},
      {"exp()", "found ')', wanted a number, a name or ("},
      {"exp(a, b)", "found ', b)', wanted )"},
      {"log(a", "found the end, wanted )"},
      {"min()", "found ')', wanted a number, a name or ("},
      {"max(a,)", "found ')', wanted a number, a name or ("},
      {"max(a b)", "found 'b)', wanted )"},
      {"mean()", "found ')', wanted a name"},
      {"mean(2)", "found '2)', wanted a name"},
      {"mean(a + b)", "found '+ b)', wanted )"},
      {"mean(mean(a))", "found '(a))', wanted )"},
  }));
  CAPTURE(text);
  CHECK_THAT(error_of(text), Catch::Contains(message));
  CHECK(error_of(text).size() < 200);  // of text of any length
}

TEST_CASE("depth is limited, length is not", "[formula]") {
  CHECK(value_of(repeated("(", 40) + "tp" + repeated(")", 40)) == 30);
  CHECK(value_of(repeated("abs(", 40) + "x" + repeated(")", 40)) == 2.5);
  CHECK(value_of("1" + repeated("**1", 40)) == 1);
  for (const int levels : {60, 100000}) {
    CAPTURE(levels);
    CHECK_THAT(error_of(repeated("(", levels) + "1" + repeated(")", levels)),
               Catch::Contains("wanted at most 50 levels"));
    CHECK_THAT(error_of(repeated("exp(", levels) + "1" + repeated(")", levels)), Catch::Contains("at most 50 levels"));
    CHECK_THAT(error_of(repeated("-(", levels)), Catch::Contains("at most 50 levels"));
    CHECK_THAT(error_of("1" + repeated("**1", levels)), Catch::Contains("at most 50 levels"));
  }
  constexpr int kMany = 100000;
  CHECK(value_of("0" + repeated(" + 1", kMany)) == kMany);
  CHECK(value_of(repeated("-", kMany) + "1") == 1);
  CHECK(value_of("max(0" + repeated(", 1", kMany) + ")") == 1);
  CHECK(value_of("0" + repeated("+(1)", kMany)) == kMany);
}

}  // namespace hfta
