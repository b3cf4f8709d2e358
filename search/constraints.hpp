#pragma once
/// Constraints between parameters, as a config writes them: "hidden2 <= hidden1".

#include <string>
#include <vector>

#include "base/formula.hpp"
#include "trials/space.hpp"

namespace hfta::search {

/// Two formulas (base/formula.hpp) over numeric parameters, and one of <=, >=, <, >, ==, != between them. A value type.
class Constraint {
 public:
  /// Throws Error{kConfig} for text that is no constraint: "found no comparison, wanted one of <=, ...".
  [[nodiscard]] static Constraint parse(const std::string& text);

  [[nodiscard]] const std::string& text() const { return text_; }
  /// Names that it reads, each once.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  /// Whether a configuration meets it; so does one that lacks a parameter which it reads. true and false count as 1 and
  /// 0. NaN meets no comparison but !=.
  [[nodiscard]] bool holds(const trials::Params& params) const;

 private:
  std::string text_, comparison_;
  std::vector<Formula> sides_;  // left, right
  std::vector<std::string> names_;
};

/// The first one that a configuration does not meet; nullptr: it meets all.
[[nodiscard]] const Constraint* broken(const std::vector<Constraint>& constraints, const trials::Params& params);

}  // namespace hfta::search
