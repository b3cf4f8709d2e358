#include "fusion/optimizers/gradient_average.hpp"

#include <algorithm>
#include <cmath>

#include "fusion/optimizers/rules.hpp"

namespace hfta::fusion {
namespace {

// The first state behind the slot's steps so far, each of this gradient. It has settled before so many.
template <typename Rule>
double state_behind(const SlotStep& slot, double gradient) {
  constexpr std::int64_t kMost = 10000;
  constexpr double kSettled = 1e-9;
  double weight = 0, states[kMostStates] = {};
  SlotStep at = slot;
  at.hyper.lr = 0;
  at.hyper.weight_decay = 0;
  for (at.step = 1; at.step <= std::min(slot.step, kMost); ++at.step) {
    const double before = states[0];
    const auto numbers = numbers_of<Rule, double>(at);
    with_form<Rule, double>(numbers, [&](auto form) {
      update_element<Rule, form.value>(weight, gradient, &states[0], &states[1], &states[2], 0, numbers);
    });
    if (at.step > 1 && std::abs(states[0] - before) <= kSettled * std::abs(before)) break;
  }
  return states[0];
}

}  // namespace

double state_per_gradient(OptimizerKind kind, const SlotStep& slot) {
  constexpr double kEqual = 1e-6;
  double found = 0;
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    const double one = state_behind<Rule>(slot, 1);
    const bool linear = std::abs(state_behind<Rule>(slot, -2) + 2 * one) <= kEqual * std::abs(one);
    if (linear && one > 0 && std::isfinite(one)) found = one;
  });
  return found;
}

}  // namespace hfta::fusion
