#include "base/formula.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta {
namespace {

constexpr int kDeepest = 50;

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

}  // namespace

// A recursive-descent parser, from the operators that bind loosest to those that bind tightest.
class Formula::Parser {
 public:
  explicit Parser(Formula& out) : out_(out), text_(out.text_) {}

  void run() {
    sum();
    if (!rest().empty()) fail("an operator");
  }

 private:
  [[nodiscard]] std::string_view rest() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return text_.substr(at_);
  }

  [[noreturn]] void fail(const std::string& wanted) {
    const std::string found = rest().empty() ? "the end" : "'" + printable(std::string(rest().substr(0, 20))) + "'";
    throw Error(ErrorKind::kConfig, fmt::format("found {}, wanted {}", found, wanted));
  }

  bool take(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void add(Op op) { out_.steps_.push_back({op}); }

  void deeper() {
    if (++depth_ > kDeepest + 1) fail("at most 50 levels of parentheses and powers");
  }

  void sum() {
    deeper();
    product();
    for (;;) {
      if (take("+")) {
        product();
        add(Op::kAdd);
      } else if (take("-")) {
        product();
        add(Op::kSub);
      } else {
        break;
      }
    }
    --depth_;
  }

  void product() {
    factor();
    for (;;) {
      if (!rest().starts_with("**") && take("*")) {
        factor();
        add(Op::kMul);
      } else if (take("/")) {
        factor();
        add(Op::kDiv);
      } else {
        return;
      }
    }
  }

  // -a ** b is -(a ** b), and a ** b ** c is a ** (b ** c).
  void factor() {
    bool negative = false;
    for (bool sign = true; sign;) {
      sign = take("-");
      negative = negative != sign;
      if (!sign) sign = take("+");
    }
    atom();
    if (take("**")) {
      deeper();
      factor();
      add(Op::kPow);
      --depth_;
    }
    if (negative) add(Op::kNeg);
  }

  void atom() {
    if (take("(")) {
      sum();
      if (!take(")")) fail(")");
      return;
    }
    const std::string_view text = rest();
    if (text.empty() || !is_word(text.front())) fail("a number, a name or (");
    begins_name(text.front()) ? word() : number();
  }

  void number() {
    const std::string_view text = rest();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || (length < text.size() && is_word(text[length]))) fail("a number");
    at_ += length;
    out_.steps_.push_back({Op::kNumber, value});
  }

  std::string name() {
    const std::string_view text = rest();
    if (text.empty() || !begins_name(text.front())) fail("a name");
    const auto end = std::find_if_not(text.begin(), text.end(), is_word);
    std::string found(text.begin(), end);
    at_ += found.size();
    return found;
  }

  void word() {
    const std::string found = name();
    if (!take("(")) return term({found, false});
    if (found == "mean") {
      term({name(), true});
      if (!take(")")) fail(")");
      return;
    }
    call(found);
  }

  void call(const std::string& function) {
    static constexpr std::array<std::pair<std::string_view, Op>, 4> kOfOne = {
        {{"exp", Op::kExp}, {"log", Op::kLog}, {"sqrt", Op::kSqrt}, {"abs", Op::kAbs}}};
    for (const auto& [known, op] : kOfOne) {
      if (function != known) continue;
      sum();
      add(op);
      if (!take(")")) fail(")");
      return;
    }
    if (function != "min" && function != "max") {
      throw Error(ErrorKind::kConfig, fmt::format("found a function '{}', wanted one of exp, log, sqrt, abs, min, max, "
                                                  "mean",
                                                  excerpt(function, 40)));
    }
    sum();
    while (take(",")) {
      sum();
      add(function == "min" ? Op::kMin : Op::kMax);
    }
    if (!take(")")) fail(")");
  }

  void term(const Term& found) {
    const auto known = std::find(out_.terms_.begin(), out_.terms_.end(), found);
    const auto index = static_cast<std::size_t>(known - out_.terms_.begin());
    if (known == out_.terms_.end()) out_.terms_.push_back(found);
    out_.steps_.push_back({Op::kTerm, 0, index});
  }

  Formula& out_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Formula Formula::parse(const std::string& text) {
  Formula formula;
  formula.text_ = text;
  Parser(formula).run();
  return formula;
}

double Formula::value(const std::function<double(const Term&)>& of) const {
  std::vector<double> stack;
  const auto pop = [&] {
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  const auto binary = [&](auto op) {
    const double right = pop();
    stack.back() = op(stack.back(), right);
  };
  const auto unary = [&](auto op) { stack.back() = op(stack.back()); };
  for (const Step& step : steps_) {
    switch (step.op) {
      case Op::kNumber:
        stack.push_back(step.number);
        break;
      case Op::kTerm:
        stack.push_back(of(terms_[step.term]));
        break;
      case Op::kAdd:
        binary([](double a, double b) { return a + b; });
        break;
      case Op::kSub:
        binary([](double a, double b) { return a - b; });
        break;
      case Op::kMul:
        binary([](double a, double b) { return a * b; });
        break;
      case Op::kDiv:
        binary([](double a, double b) { return a / b; });
        break;
      case Op::kPow:
        binary([](double a, double b) { return std::pow(a, b); });
        break;
      case Op::kMin:
        binary([](double a, double b) { return a != a || a < b ? a : b; });
        break;
      case Op::kMax:
        binary([](double a, double b) { return a != a || a > b ? a : b; });
        break;
      case Op::kNeg:
        unary([](double a) { return -a; });
        break;
      case Op::kExp:
        unary([](double a) { return std::exp(a); });
        break;
      case Op::kLog:
        unary([](double a) { return std::log(a); });
        break;
      case Op::kSqrt:
        unary([](double a) { return std::sqrt(a); });
        break;
      case Op::kAbs:
        unary([](double a) { return std::abs(a); });
        break;
    }
  }
  return stack.back();
}

}  // namespace hfta
