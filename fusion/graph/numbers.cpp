#include "fusion/graph/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace hfta::fusion {
namespace {

double real(const Number& v) {
  return std::visit([](auto x) { return static_cast<double>(x); }, v);
}
bool truth(const Number& v) { return real(v) != 0; }
bool whole(const Number& v) { return !std::holds_alternative<double>(v); }
std::int64_t integer(const Number& v) {
  return std::visit([](auto x) { return static_cast<std::int64_t>(x); }, v);
}

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::kConfig, what); }

std::int64_t fitting(std::optional<std::int64_t> result) {
  if (!result) fail("found arithmetic on sizes that leaves 64 bits");
  return *result;
}

template <typename T>
T not_zero(T divisor) {
  if (divisor == 0) fail("found a division of sizes by zero");
  return divisor;
}

/// Computes on integers as integers, on anything else as doubles.
template <typename Integers, typename Reals>
auto arithmetic(Integers integers, Reals reals) {
  return [=](std::span<const Number> a) -> Number {
    if (whole(a[0]) && whole(a[1])) return fitting(integers(integer(a[0]), integer(a[1])));
    return reals(real(a[0]), real(a[1]));
  };
}

// Integers are compared as such: doubles would hold neighbours beyond 2^53 for equal.
template <typename Compare>
auto comparison(Compare compare) {
  return [=](std::span<const Number> a) -> Number {
    return whole(a[0]) && whole(a[1]) ? compare(integer(a[0]), integer(a[1])) : compare(real(a[0]), real(a[1]));
  };
}

// Gives one of the two as it is, the first where they are equal.
template <typename Better>
auto choice(Better better) {
  return [=](std::span<const Number> a) -> Number {
    const bool second =
        whole(a[0]) && whole(a[1]) ? better(integer(a[1]), integer(a[0])) : better(real(a[1]), real(a[0]));
    return a[second ? 1 : 0];
  };
}

template <typename Round>
auto rounding(Round round) {
  return [=](std::span<const Number> a) -> Number {
    if (whole(a[0])) return integer(a[0]);
    const std::optional<std::int64_t> rounded = exact_integer(round(std::get<double>(a[0])));
    if (!rounded) fail(fmt::format("found {} where a size is rounded", std::get<double>(a[0])));
    return *rounded;
  };
}

Number power(const Number& base, const Number& exponent) {
  const bool integers = whole(base) && whole(exponent) && integer(exponent) >= 0;
  if (integers) return fitting(checked_power(integer(base), integer(exponent)));
  return std::pow(real(base), real(exponent));
}

using Function = std::function<Number(std::span<const Number>)>;

const std::unordered_map<std::string, Function>& functions() {
  static const std::unordered_map<std::string, Function> table = {
      {"add", arithmetic(checked_add, std::plus<double>())},
      {"sub", arithmetic(checked_sub, std::minus<double>())},
      {"mul", arithmetic(checked_mul, std::multiplies<double>())},
      {"floordiv", arithmetic([](std::int64_t a, std::int64_t b) { return floor_divide(a, not_zero(b)); },
                              [](double a, double b) { return std::floor(a / not_zero(b)); })},
      {"mod", arithmetic([](std::int64_t a, std::int64_t b) { return floor_remainder(a, not_zero(b)); },
                         [](double a, double b) { return a - std::floor(a / not_zero(b)) * b; })},
      {"min", choice(std::less<>())},
      {"max", choice(std::greater<>())},
      {"truediv", [](std::span<const Number> a) -> Number { return real(a[0]) / not_zero(real(a[1])); }},
      {"pow", [](std::span<const Number> a) { return power(a[0], a[1]); }},
      {"neg",
       [](std::span<const Number> a) -> Number {
         return whole(a[0]) ? Number(fitting(checked_sub(0, integer(a[0])))) : Number(-real(a[0]));
       }},
      {"abs",
       [](std::span<const Number> a) -> Number {
         if (!whole(a[0])) return std::abs(real(a[0]));
         return integer(a[0]) < 0 ? fitting(checked_sub(0, integer(a[0]))) : integer(a[0]);
       }},
      {"eq", comparison(std::equal_to<>())},
      {"ne", comparison(std::not_equal_to<>())},
      {"lt", comparison(std::less<>())},
      {"le", comparison(std::less_equal<>())},
      {"gt", comparison(std::greater<>())},
      {"ge", comparison(std::greater_equal<>())},
      {"and", [](std::span<const Number> a) -> Number { return truth(a[0]) && truth(a[1]); }},
      {"or", [](std::span<const Number> a) -> Number { return truth(a[0]) || truth(a[1]); }},
      {"not", [](std::span<const Number> a) -> Number { return !truth(a[0]); }},
      {"ite", [](std::span<const Number> a) -> Number { return truth(a[0]) ? a[1] : a[2]; }},
      {"to_int", rounding([](double x) { return std::trunc(x); })},
      {"to_float", [](std::span<const Number> a) -> Number { return real(a[0]); }},
      {"ceil", rounding([](double x) { return std::ceil(x); })},
      {"floor", rounding([](double x) { return std::floor(x); })},
      {"round", rounding([](double x) { return std::nearbyint(x); })},
      {"trunc", rounding([](double x) { return std::trunc(x); })},
      {"sqrt", [](std::span<const Number> a) -> Number { return std::sqrt(real(a[0])); }},
  };
  return table;
}

std::size_t arity_of(const std::string& name) {
  static const std::set<std::string> unary = {"neg",  "abs",   "not",   "to_int", "to_float",
                                              "ceil", "floor", "round", "trunc",  "sqrt"};
  return name == "ite" ? 3 : unary.contains(name) ? 1 : 2;
}

}  // namespace

Number number_of(const std::string& op, std::span<const Number> args) {
  const std::string name = op.substr(std::string("number::").size());
  const auto found = functions().find(name);
  if (found == functions().end()) fail("this op on numbers is not known");
  if (args.size() != arity_of(name)) {
    fail(fmt::format("found {} arguments, wanted {}", args.size(), arity_of(name)));
  }
  return found->second(args);
}

}  // namespace hfta::fusion
