#include "fusion/pt2/symbols.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace hfta::fusion::pt2 {
namespace {

constexpr int kDeepest = 50;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Lookup = std::function<double(const std::string&)>;

/// sympy's own notation, `Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))`, evaluated as it is read. What
/// it does not know is NaN.
class Evaluator {
 public:
  Evaluator(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  double run() {
    const double value = term(0);
    return rest_.empty() && at_ == text_.size() ? value : kNaN;
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
  double broken() {
    rest_ = "broken";
    return kNaN;
  }

  double term(int depth) {
    if (depth > kDeepest) return broken();
    const std::string name = word();
    if (name.empty()) return broken();
    if (peek() != '(') return literal(name);
    ++at_;
    if (name == "Symbol") return symbol();
    std::vector<double> args;
    while (!take(')')) {
      if (!args.empty() && !take(',')) return broken();
      args.push_back(term(depth + 1));
      if (!rest_.empty()) return kNaN;
    }
    return apply(name, args);
  }

  static double literal(const std::string& name) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc() && end == name.data() + name.size() ? static_cast<double>(number) : kNaN;
  }

  // After `Symbol(`: the quoted name, and assumptions that do not matter.
  double symbol() {
    if (!take('\'')) return broken();
    const std::size_t quote = text_.find('\'', at_);
    const std::size_t end = text_.find(')', at_);
    if (quote == std::string_view::npos || end == std::string_view::npos || end < quote) return broken();
    const std::string name(text_.substr(at_, quote - at_));
    at_ = end + 1;
    return lookup_(name);
  }

  static double apply(const std::string& name, const std::vector<double>& args) {
    const auto fold = [&](double first, auto op) {
      for (const double arg : args) first = op(first, arg);
      return first;
    };
    if (name == "Add") return fold(0, std::plus<>());
    if (name == "Mul") return fold(1, std::multiplies<>());
    if (args.size() == 1) {
      if (name == "Integer" || name == "ToFloat") return args[0];
      if (name == "TruncToInt") return std::trunc(args[0]);
      if (name == "FloorToInt" || name == "floor") return std::floor(args[0]);
      if (name == "CeilToInt" || name == "ceiling") return std::ceil(args[0]);
      return kNaN;
    }
    if (args.empty()) return kNaN;
    if (name == "Max") return *std::max_element(args.begin(), args.end());
    if (name == "Min") return *std::min_element(args.begin(), args.end());
    if (args.size() != 2) return kNaN;
    if (name == "FloorDiv" || name == "CleanDiv") return std::floor(args[0] / args[1]);
    if (name == "Rational" || name == "IntTrueDiv" || name == "FloatTrueDiv") return args[0] / args[1];
    if (name == "Mod" || name == "PythonMod") return args[0] - args[1] * std::floor(args[0] / args[1]);
    if (name == "Pow" || name == "PowByNatural") return std::pow(args[0], args[1]);
    return kNaN;
  }

  std::string_view text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  std::string rest_;
};

}  // namespace

std::string lone_symbol(const std::string& expression) {
  std::string found;
  int symbols = 0;
  const Lookup lookup = [&](const std::string& name) {
    found = name;
    ++symbols;
    return 0.0;
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
    return 1.0;
  };
  Evaluator(expression, lookup).run();
  return found;
}

std::optional<std::int64_t> Symbols::evaluate(const std::string& expression, std::int64_t n) const {
  const Lookup lookup = [&](const std::string& name) {
    if (batch_.contains(name)) return static_cast<double>(n);
    const auto hint = hints_.find(name);
    return hint == hints_.end() ? kNaN : static_cast<double>(hint->second);
  };
  const double value = Evaluator(expression, lookup).run();
  constexpr double kLargest = 1e15;  // a double counts exactly up to there
  if (!(std::abs(value) < kLargest) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
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
    if (!value) return size.hint.value_or(1);
    if (!constant) constant = value;
    if (!factor) factor = *value / n;
    same = same && *value == *constant;
    multiple = multiple && *value == *factor * n;
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
