#include "fusion/pt2/symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/checked.hpp"

namespace hfta::fusion::pt2 {
namespace {

constexpr int kDeepest = 50;

/// A fraction in lowest terms, with a denominator above 0: expressions of sizes hold halves on the way to whole
/// numbers.
struct Fraction {
  std::int64_t above = 0;
  std::int64_t below = 1;
};

/// Nothing: not known, or beyond 64 bits.
using Maybe = std::optional<Fraction>;
using Lookup = std::function<Maybe(const std::string&)>;

Maybe fraction(std::optional<std::int64_t> above, std::optional<std::int64_t> below = 1) {
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  if (!above || !below || *below == 0 || *above == kLowest || *below == kLowest) return std::nullopt;
  const std::int64_t common = std::gcd(*above, *below) * (*below < 0 ? -1 : 1);
  return Fraction{*above / common, *below / common};
}

std::optional<std::int64_t> sum_of(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? checked_add(*a, *b) : std::nullopt;
}

Maybe added(const Fraction& a, const Fraction& b) {
  return fraction(sum_of(checked_mul(a.above, b.below), checked_mul(b.above, a.below)), checked_mul(a.below, b.below));
}
Maybe multiplied(const Fraction& a, const Fraction& b) {
  return fraction(checked_mul(a.above, b.above), checked_mul(a.below, b.below));
}
Maybe divided(const Fraction& a, const Fraction& b) {
  return fraction(checked_mul(a.above, b.below), checked_mul(a.below, b.above));
}
Maybe floored(const Maybe& a) { return a ? fraction(floor_divide(a->above, a->below)) : std::nullopt; }
Maybe negated(const Maybe& a) { return a ? fraction(checked_sub(0, a->above), a->below) : std::nullopt; }
Maybe ceiled(const Maybe& a) { return negated(floored(negated(a))); }
Maybe truncated(const Maybe& a) { return a && a->above < 0 ? ceiled(a) : floored(a); }

/// Nothing where the products leave 64 bits.
std::optional<bool> less(const Fraction& a, const Fraction& b) {
  const auto left = checked_mul(a.above, b.below), right = checked_mul(b.above, a.below);
  return left && right ? std::optional(*left < *right) : std::nullopt;
}

Maybe extreme(const Fraction& a, const Fraction& b, bool largest) {
  const std::optional<bool> smaller = less(a, b);
  if (!smaller) return std::nullopt;
  return *smaller == largest ? b : a;
}

Maybe remainder(const Fraction& a, const Fraction& b) {
  const Maybe quotient = divided(a, b);
  const Maybe whole = floored(quotient);
  const Maybe taken = whole ? negated(multiplied(*whole, b)) : std::nullopt;
  return taken ? added(a, *taken) : std::nullopt;
}

Maybe power(const Fraction& a, const Fraction& exponent) {
  if (exponent.below != 1) return std::nullopt;
  return fraction(checked_power(a.above, exponent.above), checked_power(a.below, exponent.above));
}

using Binary = Maybe (*)(const Fraction&, const Fraction&);
using Unary = Maybe (*)(const Maybe&);

/// The function of that name that takes any number of arguments, or two if `args` is 2.
Binary binary_of(const std::string& name, std::size_t args) {
  if (name == "Add") return added;
  if (name == "Mul") return multiplied;
  if (name == "Max") return [](const Fraction& a, const Fraction& b) { return extreme(a, b, true); };
  if (name == "Min") return [](const Fraction& a, const Fraction& b) { return extreme(a, b, false); };
  if (args != 2) return nullptr;
  if (name == "FloorDiv" || name == "CleanDiv") {
    return [](const Fraction& a, const Fraction& b) { return floored(divided(a, b)); };
  }
  if (name == "Rational" || name == "IntTrueDiv" || name == "FloatTrueDiv") return divided;
  if (name == "Mod" || name == "PythonMod") return remainder;
  if (name == "Pow" || name == "PowByNatural") return power;
  return nullptr;
}

Unary unary_of(const std::string& name) {
  if (name == "Integer" || name == "ToFloat") return [](const Maybe& a) { return a; };
  if (name == "TruncToInt") return truncated;
  if (name == "FloorToInt" || name == "floor") return floored;
  if (name == "CeilToInt" || name == "ceiling") return ceiled;
  return nullptr;
}

Maybe applied(const std::string& name, const std::vector<Maybe>& args) {
  if (args.size() == 1) {
    if (const Unary unary = unary_of(name)) return unary(args[0]);
  }
  const Binary binary = binary_of(name, args.size());
  if (binary == nullptr || args.empty()) return std::nullopt;
  Maybe out = args[0];
  for (std::size_t i = 1; i < args.size() && out; ++i) out = args[i] ? binary(*out, *args[i]) : std::nullopt;
  return out;
}

/// sympy's own notation, `Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))`, evaluated as it is read, in
/// whole numbers and fractions of them.
class Evaluator {
 public:
  Evaluator(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Maybe run() {
    const Maybe value = term(0);
    return !broken_ && at_ == text_.size() ? value : std::nullopt;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    while (peek() == ' ') ++at_;
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    while (peek() == ' ') ++at_;
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '.' || peek() == '-')
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  Maybe broken() {
    broken_ = true;
    return std::nullopt;
  }

  Maybe term(int depth) {
    if (depth > kDeepest) return broken();
    const std::string name = word();
    if (name.empty()) return broken();
    if (peek() != '(') return literal(name);
    ++at_;
    if (name == "Symbol") return symbol();
    std::vector<Maybe> args;
    while (!take(')')) {
      if (!args.empty() && !take(',')) return broken();
      args.push_back(term(depth + 1));
      if (broken_) return std::nullopt;
    }
    return applied(name, args);
  }

  static Maybe literal(const std::string& name) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc() && end == name.data() + name.size() ? fraction(number) : std::nullopt;
  }

  // After `Symbol(`: the quoted name, and assumptions that do not matter.
  Maybe symbol() {
    if (!take('\'')) return broken();
    const std::size_t quote = text_.find('\'', at_);
    const std::size_t end = text_.find(')', at_);
    if (quote == std::string_view::npos || end == std::string_view::npos || end < quote) return broken();
    const std::string name(text_.substr(at_, quote - at_));
    at_ = end + 1;
    return lookup_(name);
  }

  std::string_view text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

}  // namespace

std::string lone_symbol(const std::string& expression) {
  std::string found;
  int symbols = 0;
  const Lookup lookup = [&](const std::string& name) {
    found = name;
    ++symbols;
    return Maybe();
  };
  const bool lone = expression.starts_with("Symbol(");
  Evaluator(expression, lookup).run();
  return lone && symbols == 1 ? found : "";
}

std::string data_dependent_symbol(const std::string& expression) {
  std::string found;
  const Lookup lookup = [&](const std::string& name) {
    const bool unbacked = name.size() > 1 && (name[0] == 'u' || name.starts_with("zu"));
    if (unbacked && found.empty()) found = name;
    return Maybe();
  };
  Evaluator(expression, lookup).run();
  return found;
}

std::optional<std::int64_t> Symbols::evaluate(const std::string& expression, std::int64_t n) const {
  const Lookup lookup = [&](const std::string& name) {
    if (batch_.contains(name)) return fraction(n);
    const auto hint = hints_.find(name);
    return hint == hints_.end() ? std::nullopt : fraction(hint->second);
  };
  const Maybe value = Evaluator(expression, lookup).run();
  return value && value->below == 1 ? std::optional(value->above) : std::nullopt;
}

std::int64_t Symbols::size(const SymInt& size) const {
  if (size.expression.empty()) return size.number;
  // An expression is k*N if it is at each of a few sizes without common factors.
  static constexpr std::array<std::int64_t, 3> kBatches = {64, 81, 35};
  std::optional<std::int64_t> factor;
  std::optional<std::int64_t> constant;
  bool multiple = true;
  bool same = true;
  for (const std::int64_t n : kBatches) {
    const std::optional<std::int64_t> value = evaluate(size.expression, n);
    if (!value) return std::max<std::int64_t>(size.hint.value_or(1), 0);
    if (!constant) constant = value;
    if (!factor) factor = *value / n;
    same = same && *value == *constant;
    multiple = multiple && *value % n == 0 && *value / n == *factor;
  }
  if (same && *constant >= 0) return *constant;
  if (multiple && *factor > 0) return -*factor;
  return std::max<std::int64_t>(size.hint.value_or(1), 0);
}

Shape Symbols::shape(const std::vector<SymInt>& sizes, const Reader& json) const {
  constexpr double kMostElements = 1e12;
  Shape shape;
  double elements = 1;
  for (const SymInt& one : sizes) {
    if (one.expression.empty() && one.number < 0) json.fail(fmt::format("found a size of {}", one.number));
    shape.push_back(size(one));
    elements *= std::max(1.0, std::abs(static_cast<double>(shape.back())));
  }
  if (elements > kMostElements) json.fail(fmt::format("found a tensor {}, beyond any machine", to_text(shape)));
  return shape;
}

}  // namespace hfta::fusion::pt2
