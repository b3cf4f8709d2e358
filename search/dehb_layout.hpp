#pragma once
/// The bracket and the rung of each draw of DEHB, computed from the draw's number alone.
///
/// Awad, Mallik and Hutter, "DEHB: Evolutionary Hyperband for Scalable, Robust and Efficient Hyperparameter
/// Optimization" (IJCAI 2021). The first pass over Hyperband's brackets is Hyperband's own: the best trials of a rung
/// are promoted, and go on from their states. In every later pass each rung has new trials, as many as Hyperband would
/// have there, that are trained from their beginnings.

#include <cstdint>
#include <vector>

#include "search/scheduler.hpp"

namespace hfta::search {

struct DehbPosition {
  bool first_pass = true;
  std::size_t bracket = 0;  ///< Index into hyperband_brackets().
  std::size_t rung = 0;     ///< Index of the rung in that bracket; 0 in the first pass.
  int epochs = 1;           ///< Epochs that the draw trains before it is judged.
  int parents = 0;          ///< Trials that the rung has: as many of the best of the rung below are its parents.
};

/// Value type.
class DehbLayout {
 public:
  /// Throws Error{kConfig} for impossible options.
  explicit DehbLayout(const HyperbandOptions& options);

  [[nodiscard]] DehbPosition place(int draw) const;
  /// Draws of the first pass, and of each later one.
  [[nodiscard]] std::int64_t first_pass() const { return first_pass_; }
  [[nodiscard]] std::int64_t later_pass() const { return later_pass_; }
  /// Numbers of epochs that rungs have, ascending.
  [[nodiscard]] const std::vector<int>& budgets() const { return budgets_; }
  /// The size of a budget's subpopulation: the most trials that Hyperband has there, those of the bracket that begins
  /// with it.
  [[nodiscard]] int population(int epochs) const;
  /// Trial-epochs of draws first_pass()..draws-1.
  [[nodiscard]] std::int64_t later_cost(std::int64_t draws) const;

 private:
  std::vector<std::vector<Rung>> brackets_;
  std::int64_t first_pass_ = 0, later_pass_ = 0, later_pass_cost_ = 0;
  std::vector<int> budgets_;
};

}  // namespace hfta::search
