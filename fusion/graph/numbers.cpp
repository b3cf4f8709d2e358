#include "fusion/graph/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>

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

[[noreturn]] void too_large() { throw Error(ErrorKind::kConfig, "found a number of sizes beyond 64 bits"); }

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) too_large();
  return out;
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_sub_overflow(a, b, &out)) too_large();
  return out;
}

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) too_large();
  return out;
}

std::int64_t whole_of(double x) {
  constexpr double kBeyond = 9223372036854775808.0;
  if (!(x >= -kBeyond && x < kBeyond)) too_large();
  return static_cast<std::int64_t>(x);
}

template <typename Integers, typename Reals>
auto arithmetic(Integers integers, Reals reals) {
  return [=](std::span<const Number> a) -> Number {
    if (whole(a[0]) && whole(a[1])) return integers(integer(a[0]), integer(a[1]));
    return reals(real(a[0]), real(a[1]));
  };
}

template <typename Compare>
auto comparison(Compare compare) {
  return [=](std::span<const Number> a) -> Number {
    return whole(a[0]) && whole(a[1]) ? compare(integer(a[0]), integer(a[1])) : compare(real(a[0]), real(a[1]));
  };
}

template <typename Round>
auto rounding(Round round) {
  return [=](std::span<const Number> a) -> Number {
    return whole(a[0]) ? a[0] : Number(whole_of(round(std::get<double>(a[0]))));
  };
}

std::int64_t not_zero(std::int64_t divisor) {
  if (divisor == 0) throw Error(ErrorKind::kConfig, "model: found a division of sizes by zero");
  return divisor;
}

// Python's: rounds down, and the remainder has the divisor's sign.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (not_zero(b) == -1) return difference(0, a);
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  for (; exponent > 0; --exponent) out = product(out, base);
  return out;
}

using Function = std::function<Number(std::span<const Number>)>;

const std::unordered_map<std::string, Function>& functions() {
  static const std::unordered_map<std::string, Function> table = {
      {"add", arithmetic(sum, std::plus<double>())},
      {"sub", arithmetic(difference, std::minus<double>())},
      {"mul", arithmetic(product, std::multiplies<double>())},
      {"floordiv", arithmetic(floor_divide, [](double a, double b) { return std::floor(a / b); })},
      {"mod", arithmetic([](std::int64_t a, std::int64_t b) { return b == -1 ? 0 : a - floor_divide(a, b) * b; },
                         [](double a, double b) { return a - std::floor(a / b) * b; })},
      {"min", arithmetic([](std::int64_t a, std::int64_t b) { return std::min(a, b); },
                         [](double a, double b) { return std::min(a, b); })},
      {"max", arithmetic([](std::int64_t a, std::int64_t b) { return std::max(a, b); },
                         [](double a, double b) { return std::max(a, b); })},
      {"truediv", [](std::span<const Number> a) -> Number { return real(a[0]) / real(a[1]); }},
      {"pow",
       [](std::span<const Number> a) -> Number {
         if (whole(a[0]) && whole(a[1]) && integer(a[1]) >= 0 && integer(a[1]) < 63)
           return power(integer(a[0]), integer(a[1]));
         return std::pow(real(a[0]), real(a[1]));
       }},
      {"neg",
       [](std::span<const Number> a) -> Number {
         return whole(a[0]) ? Number(difference(0, integer(a[0]))) : Number(-real(a[0]));
       }},
      {"abs",
       [](std::span<const Number> a) -> Number {
         return whole(a[0]) ? Number(integer(a[0]) < 0 ? difference(0, integer(a[0])) : integer(a[0]))
                            : Number(std::abs(real(a[0])));
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
  if (found == functions().end()) throw Error(ErrorKind::kConfig, "this op on numbers is not known");
  if (args.size() != arity_of(name)) {
    throw Error(ErrorKind::kConfig, fmt::format("found {} arguments, wanted {}", args.size(), arity_of(name)));
  }
  return found->second(args);
}

}  // namespace hfta::fusion
