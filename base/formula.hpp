#pragma once
/// Arithmetic that a config writes: over sums, as a metric, "2*tp / (2*tp + fp + fn)"; over parameters, as in a
/// constraint.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hfta {

/// Numbers, names, + - * / **, parentheses, exp, log, sqrt, abs, min, max and mean(name), with Python's precedence, on
/// doubles: a division by zero gives what IEEE 754 says. A value type; immutable.
class Formula {
 public:
  /// A name that a formula reads.
  struct Term {
    std::string name;
    bool mean = false;  ///< mean(name): the mean, and not the sum.

    bool operator==(const Term&) const = default;
  };

  /// Throws Error{kConfig}: "found ')', wanted a number, a name or (". Text of any length and depth is safe to parse.
  [[nodiscard]] static Formula parse(const std::string& text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// The terms in the order in which they first occur, each once.
  [[nodiscard]] const std::vector<Term>& terms() const { return terms_; }
  [[nodiscard]] double value(const std::function<double(const Term&)>& of) const;

  bool operator==(const Formula& other) const { return text_ == other.text_; }

 private:
  enum class Op { kNumber, kTerm, kAdd, kSub, kMul, kDiv, kPow, kNeg, kExp, kLog, kSqrt, kAbs, kMin, kMax };
  struct Step {
    Op op = Op::kNumber;
    double number = 0;
    std::size_t term = 0;
  };
  class Parser;

  std::string text_;
  std::vector<Step> steps_;  // in postfix order
  std::vector<Term> terms_;
};

}  // namespace hfta
