#include "search/constraints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::search {
namespace {

using trials::ParamValue;

constexpr std::array<std::string_view, 6> kComparisons = {"<=", ">=", "==", "!=", "<", ">"};  // longer ones first
constexpr const char* kWanted = "one of <=, >=, ==, !=, <, >";

std::optional<std::pair<std::size_t, std::string_view>> comparison_in(const std::string& text, std::size_t from) {
  for (std::size_t i = from; i < text.size(); ++i) {
    for (const std::string_view comparison : kComparisons) {
      if (std::string_view(text).substr(i).starts_with(comparison)) return std::pair(i, comparison);
    }
  }
  return std::nullopt;
}

double number_of(const ParamValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nan("");
}

bool compare(double a, std::string_view comparison, double b) {
  if (comparison == "<=") return a <= b;
  if (comparison == ">=") return a >= b;
  if (comparison == "<") return a < b;
  if (comparison == ">") return a > b;
  return comparison == "==" ? a == b : a != b;
}

}  // namespace

Constraint Constraint::parse(const std::string& text) {
  const auto found = comparison_in(text, 0);
  if (!found) throw Error(ErrorKind::kConfig, fmt::format("found no comparison, wanted {}", kWanted));
  const auto [at, comparison] = *found;
  if (comparison_in(text, at + comparison.size())) {
    throw Error(ErrorKind::kConfig, "found more than one comparison, wanted one; two constraints say as much");
  }
  Constraint constraint;
  constraint.text_ = text;
  constraint.comparison_ = comparison;
  constraint.sides_ = {Formula::parse(text.substr(0, at)), Formula::parse(text.substr(at + comparison.size()))};
  for (const Formula& side : constraint.sides_) {
    for (const Formula::Term& term : side.terms()) {
      if (term.mean) throw Error(ErrorKind::kConfig, "found a function 'mean', which parameters have not");
      const std::vector<std::string>& names = constraint.names_;
      if (std::find(names.begin(), names.end(), term.name) == names.end()) constraint.names_.push_back(term.name);
    }
  }
  return constraint;
}

bool Constraint::holds(const trials::Params& params) const {
  const auto lacks = [&](const std::string& name) { return trials::find_value(params, name) == nullptr; };
  if (std::any_of(names_.begin(), names_.end(), lacks)) return true;
  const auto of = [&](const Formula::Term& term) { return number_of(*trials::find_value(params, term.name)); };
  return compare(sides_[0].value(of), comparison_, sides_[1].value(of));
}

const Constraint* broken(const std::vector<Constraint>& constraints, const trials::Params& params) {
  const auto found = std::find_if(constraints.begin(), constraints.end(),
                                  [&](const Constraint& constraint) { return !constraint.holds(params); });
  return found == constraints.end() ? nullptr : &*found;
}

}  // namespace hfta::search
