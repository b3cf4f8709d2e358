#include "fusion/array/numbers.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "fusion/array/schema.hpp"

namespace hfta::fusion {
namespace {

using c10::IValue;

double real(const IValue& v) {
  return v.isInt() ? static_cast<double>(v.toInt()) : v.isBool() ? static_cast<double>(v.toBool()) : v.toDouble();
}
bool truth(const IValue& v) { return real(v) != 0; }
bool whole(const IValue& v) { return v.isInt() || v.isBool(); }
std::int64_t integer(const IValue& v) { return v.isBool() ? static_cast<std::int64_t>(v.toBool()) : v.toInt(); }

template <typename Integers, typename Reals>
auto arithmetic(Integers integers, Reals reals) {
  return [=](std::span<const IValue> a) -> IValue {
    if (whole(a[0]) && whole(a[1])) return integers(integer(a[0]), integer(a[1]));
    return reals(real(a[0]), real(a[1]));
  };
}

template <typename Compare>
auto comparison(Compare compare) {
  return [=](std::span<const IValue> a) -> IValue {
    return whole(a[0]) && whole(a[1]) ? compare(integer(a[0]), integer(a[1])) : compare(real(a[0]), real(a[1]));
  };
}

template <typename Round>
auto rounding(Round round) {
  return [=](std::span<const IValue> a) -> IValue {
    return whole(a[0]) ? a[0] : IValue(static_cast<std::int64_t>(round(a[0].toDouble())));
  };
}

std::int64_t not_zero(std::int64_t divisor) {
  if (divisor == 0) throw Error(ErrorKind::kConfig, "model: found a division of sizes by zero");
  return divisor;
}

// Python's: rounds down, and the remainder has the divisor's sign.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / not_zero(b);
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  for (; exponent > 0; --exponent) out *= base;
  return out;
}

using Function = std::function<IValue(std::span<const IValue>)>;

const std::unordered_map<std::string, Function>& functions() {
  static const std::unordered_map<std::string, Function> table = {
      {"add", arithmetic(std::plus<std::int64_t>(), std::plus<double>())},
      {"sub", arithmetic(std::minus<std::int64_t>(), std::minus<double>())},
      {"mul", arithmetic(std::multiplies<std::int64_t>(), std::multiplies<double>())},
      {"floordiv", arithmetic(floor_divide, [](double a, double b) { return std::floor(a / b); })},
      {"mod", arithmetic([](std::int64_t a, std::int64_t b) { return a - floor_divide(a, b) * b; },
                         [](double a, double b) { return a - std::floor(a / b) * b; })},
      {"min", arithmetic([](std::int64_t a, std::int64_t b) { return std::min(a, b); },
                         [](double a, double b) { return std::min(a, b); })},
      {"max", arithmetic([](std::int64_t a, std::int64_t b) { return std::max(a, b); },
                         [](double a, double b) { return std::max(a, b); })},
      {"truediv", [](std::span<const IValue> a) -> IValue { return real(a[0]) / real(a[1]); }},
      {"pow",
       [](std::span<const IValue> a) -> IValue {
         if (whole(a[0]) && whole(a[1]) && integer(a[1]) >= 0 && integer(a[1]) < 63)
           return power(integer(a[0]), integer(a[1]));
         return std::pow(real(a[0]), real(a[1]));
       }},
      {"neg", [](std::span<const IValue> a) -> IValue { return whole(a[0]) ? IValue(-integer(a[0])) : -real(a[0]); }},
      {"abs",
       [](std::span<const IValue> a) -> IValue {
         return whole(a[0]) ? IValue(std::abs(integer(a[0]))) : std::abs(real(a[0]));
       }},
      {"eq", comparison(std::equal_to<>())},
      {"ne", comparison(std::not_equal_to<>())},
      {"lt", comparison(std::less<>())},
      {"le", comparison(std::less_equal<>())},
      {"gt", comparison(std::greater<>())},
      {"ge", comparison(std::greater_equal<>())},
      {"and", [](std::span<const IValue> a) -> IValue { return truth(a[0]) && truth(a[1]); }},
      {"or", [](std::span<const IValue> a) -> IValue { return truth(a[0]) || truth(a[1]); }},
      {"not", [](std::span<const IValue> a) -> IValue { return !truth(a[0]); }},
      {"ite", [](std::span<const IValue> a) -> IValue { return truth(a[0]) ? a[1] : a[2]; }},
      {"to_int", rounding([](double x) { return std::trunc(x); })},
      {"to_float", [](std::span<const IValue> a) -> IValue { return real(a[0]); }},
      {"ceil", rounding([](double x) { return std::ceil(x); })},
      {"floor", rounding([](double x) { return std::floor(x); })},
      {"round", rounding([](double x) { return std::nearbyint(x); })},
      {"trunc", rounding([](double x) { return std::trunc(x); })},
      {"sqrt", [](std::span<const IValue> a) -> IValue { return std::sqrt(real(a[0])); }},
  };
  return table;
}

std::size_t arity_of(const std::string& name) {
  static const std::set<std::string> unary = {"neg",  "abs",   "not",   "to_int", "to_float",
                                              "ceil", "floor", "round", "trunc",  "sqrt"};
  return name == "ite" ? 3 : unary.contains(name) ? 1 : 2;
}

IValue argument(const Arg& arg, std::span<const IValue> values) {
  if (const auto* id = std::get_if<ValueId>(&arg)) return values[static_cast<std::size_t>(*id)];
  if (const auto* number = std::get_if<std::int64_t>(&arg)) return *number;
  if (const auto* number = std::get_if<double>(&arg)) return *number;
  if (const auto* number = std::get_if<bool>(&arg)) return *number;
  throw Error(ErrorKind::kConfig, "found an argument that is no number, wanted one");
}

std::optional<IValue> of_tensor(const std::string& name, const Node& node, std::span<const IValue> values,
                                const std::vector<bool>& slotwise) {
  if (name != "size" && name != "numel" && name != "stride") return std::nullopt;
  const ValueId id = std::get<ValueId>(node.args.at(0));
  at::Tensor tensor = values[static_cast<std::size_t>(id)].toTensor();
  if (!slotwise.empty() && slotwise[static_cast<std::size_t>(id)]) tensor = tensor.select(0, 0);
  if (name == "numel") return tensor.numel();
  const std::int64_t dim = integer(argument(node.args.at(1), values));
  return name == "size" ? tensor.size(dim) : tensor.stride(dim);
}

}  // namespace

IValue number_of(const Node& node, std::span<const IValue> values, const std::vector<bool>& slotwise) {
  const std::string name = node.op.substr(std::string("number::").size());
  if (auto size = of_tensor(name, node, values, slotwise)) return *size;
  const auto found = functions().find(name);
  if (found == functions().end()) {
    fail_at(node, "this op on numbers is not known");
  }
  std::vector<IValue> args;
  for (const Arg& arg : node.args) args.push_back(argument(arg, values));
  if (args.size() != arity_of(name)) {
    fail_at(node, fmt::format("found {} arguments, wanted {}", args.size(), arity_of(name)));
  }
  return found->second(args);
}

}  // namespace hfta::fusion
