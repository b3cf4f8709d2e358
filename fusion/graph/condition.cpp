#include "fusion/graph/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fusion/graph/numbers.hpp"

namespace hfta::fusion {
namespace {

constexpr int kDeepest = 50;

/// An operator or a function, and the op on numbers that it is.
using Names = std::pair<std::string_view, std::string_view>;

/// Python's grammar of expressions, from what binds loosest to what binds tightest, evaluated as it is read.
class Evaluator {
 public:
  Evaluator(std::string_view text, std::int64_t n) : text_(text), n_(n) {}

  Number run() {
    const Number value = disjunction();
    if (!rest().empty()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const { throw Error(ErrorKind::kConfig, fmt::format("found '{}' in a condition", rest())); }
  [[nodiscard]] std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  // A word is taken whole, so that "or" is not found in "order".
  bool take(std::string_view token) {
    skip_spaces();
    if (!rest().starts_with(token)) return false;
    const std::size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }

  template <std::size_t kCount>
  std::string_view take_any(const std::array<Names, kCount>& operators) {
    for (const auto& [token, op] : operators) {
      if (take(token)) return op;
    }
    return "";
  }

  static Number apply(std::string_view op, const std::vector<Number>& args) {
    return number_of(fmt::format("number::{}", op), args);
  }

  Number disjunction() {
    if (++depth_ > kDeepest) fail();
    Number value = conjunction();
    while (take("or")) value = apply("or", {value, conjunction()});
    --depth_;
    return value;
  }

  Number conjunction() {
    Number value = negation();
    while (take("and")) value = apply("and", {value, negation()});
    return value;
  }

  Number negation() {
    bool negative = false;
    while (take("not")) negative = !negative;
    const Number value = comparison();
    return negative ? apply("not", {value}) : value;
  }

  // a < b < c is a < b and b < c.
  Number comparison() {
    static constexpr std::array<Names, 6> kRelations = {
        {{"==", "eq"}, {"!=", "ne"}, {"<=", "le"}, {">=", "ge"}, {"<", "lt"}, {">", "gt"}}};
    Number left = sum();
    std::string_view op = take_any(kRelations);
    if (op.empty()) return left;
    Number all = true;
    for (; !op.empty(); op = take_any(kRelations)) {
      Number right = sum();
      all = apply("and", {all, apply(op, {left, right})});
      left = std::move(right);
    }
    return all;
  }

  Number sum() {
    static constexpr std::array<Names, 2> kSums = {{{"+", "add"}, {"-", "sub"}}};
    Number value = product();
    for (std::string_view op = take_any(kSums); !op.empty(); op = take_any(kSums))
      value = apply(op, {value, product()});
    return value;
  }

  Number product() {
    static constexpr std::array<Names, 4> kProducts = {
        {{"*", "mul"}, {"//", "floordiv"}, {"/", "truediv"}, {"%", "mod"}}};
    Number value = factor();
    for (std::string_view op = take_any(kProducts); !op.empty(); op = take_any(kProducts)) {
      value = apply(op, {value, factor()});
    }
    return value;
  }

  Number factor() {
    bool negative = false;
    while (take("-")) negative = !negative;
    Number value = atom();
    if (take("**")) {
      if (++depth_ > kDeepest) fail();
      value = apply("pow", {value, factor()});
      --depth_;
    }
    return negative ? apply("neg", {value}) : value;
  }

  Number atom() {
    if (take("(")) {
      const Number value = disjunction();
      if (!take(")")) fail();
      return value;
    }
    if (take("N")) return n_;
    if (take("True")) return true;
    if (take("False")) return false;
    static constexpr std::array<Names, 12> kFunctions = {{{"Max", "max"},
                                                          {"max", "max"},
                                                          {"Min", "min"},
                                                          {"min", "min"},
                                                          {"abs", "abs"},
                                                          {"int", "to_int"},
                                                          {"float", "to_float"},
                                                          {"math.floor", "floor"},
                                                          {"math.ceil", "ceil"},
                                                          {"math.trunc", "trunc"},
                                                          {"torch.sym_max", "max"},
                                                          {"torch.sym_min", "min"}}};
    const std::string_view function = take_any(kFunctions);
    return function.empty() ? literal() : call(function);
  }

  Number call(std::string_view function) {
    if (!take("(")) fail();
    std::vector<Number> args = {disjunction()};
    while (take(",")) args.push_back(disjunction());
    if (!take(")")) fail();
    const bool folds = function == "max" || function == "min";
    if (!folds) return apply(function, args);
    Number value = args.front();
    for (std::size_t i = 1; i < args.size(); ++i) value = apply(function, {value, args[i]});
    return value;
  }

  Number literal() {
    skip_spaces();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const char *const first = text_.data() + at_, *const last = text_.data() + end;
    std::int64_t whole = 0;
    double real = 0;
    const bool is_whole = std::from_chars(first, last, whole).ptr == last && end > at_;
    const auto parsed = std::from_chars(first, last, real);
    const bool is_number = end > at_ && std::isdigit(static_cast<unsigned char>(*first)) != 0 && parsed.ptr == last &&
                           parsed.ec == std::errc();
    if (!is_number) fail();
    at_ = end;
    return is_whole ? Number(whole) : Number(real);
  }

  std::string_view text_;
  std::int64_t n_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool holds(const std::string& condition, std::int64_t n) {
  return std::visit([](auto value) { return value != 0; }, Evaluator(condition, n).run());
}

}  // namespace hfta::fusion
