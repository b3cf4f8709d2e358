#pragma once
/// The table of the optimizers: one rule per kind. Without torch; C++17 (nvcc).
///
/// A rule has
///  - `kind`, `name`, `states` (names; kMostStates at most), `hypers` (what it reads, with defaults);
///  - Numbers<V>: what an update needs of a slot and step, numbers of type V and nothing else;
///  - numbers<V>(each): computes them, in double; each(f) is f(slot's SlotStep) as a V;
///  - update<form>(weight, gradient, state..., numbers): the update of one element, as many states as it names;
///  - where an update has several forms that touch different states: `forms`, their number, and form(numbers).

#include <cstddef>
#include <tuple>
#include <type_traits>

#include "fusion/optimizers/rules/adadelta.hpp"
#include "fusion/optimizers/rules/adagrad.hpp"
#include "fusion/optimizers/rules/adam.hpp"
#include "fusion/optimizers/rules/adamax.hpp"
#include "fusion/optimizers/rules/lion.hpp"
#include "fusion/optimizers/rules/nadam.hpp"
#include "fusion/optimizers/rules/radam.hpp"
#include "fusion/optimizers/rules/rmsprop.hpp"
#include "fusion/optimizers/rules/rprop.hpp"
#include "fusion/optimizers/rules/sgd.hpp"

namespace hfta::fusion {
namespace rules {

/// All rules, in the enumeration's order.
using Table = std::tuple<Sgd, Adam, AdamW, Rmsprop, Adagrad, Adadelta, Adamax, Nadam, Radam, Lion, Rprop>;

constexpr std::size_t kCount = std::tuple_size_v<Table>;
static_assert(kCount == static_cast<std::size_t>(OptimizerKind::kLast) + 1, "a kind has no rule");

/// The number of a rule's states.
template <typename Rule>
constexpr std::size_t kStates = std::extent_v<decltype(Rule::states)>;

template <typename Rule, typename = void>
struct Forms {
  static constexpr int count = 1;
  template <typename T>
  static HFTA_BOTH int of(const typename Rule::template Numbers<T>&) {
    return 0;
  }
};
template <typename Rule>
struct Forms<Rule, std::void_t<decltype(Rule::forms)>> {
  static constexpr int count = Rule::forms;
  template <typename T>
  static HFTA_BOTH int of(const typename Rule::template Numbers<T>& numbers) {
    return Rule::form(numbers);
  }
};

template <std::size_t index, typename Work>
void visit(OptimizerKind kind, Work& work) {
  using Rule = std::tuple_element_t<index, Table>;
  static_assert(Rule::kind == static_cast<OptimizerKind>(index), "the table is not in the enumeration's order");
  if (kind == Rule::kind) {
    work(Rule());
  } else if constexpr (index + 1 < kCount) {
    visit<index + 1>(kind, work);
  }
}

}  // namespace rules

/// The largest number of states that a rule has.
constexpr std::size_t kMostStates = 3;

/// Calls work(rule) with the kind's rule.
template <typename Work>
void with_rule(OptimizerKind kind, Work work) {
  rules::visit<0>(kind, work);
}

/// Calls work(std::integral_constant<int, form>) with the form of these numbers.
template <typename Rule, typename T, typename Work, int form = 0>
HFTA_BOTH void with_form(const typename Rule::template Numbers<T>& numbers, const Work& work) {
  if constexpr (form + 1 < rules::Forms<Rule>::count) {
    if (rules::Forms<Rule>::template of<T>(numbers) != form) {
      return with_form<Rule, T, Work, form + 1>(numbers, work);
    }
  }
  work(std::integral_constant<int, form>());
}

/// One slot's numbers for a step, computed in double and rounded to T.
template <typename Rule, typename T>
typename Rule::template Numbers<T> numbers_of(const SlotStep& slot) {
  return Rule::template numbers<T>([&](const auto& f) { return static_cast<T>(f(slot)); });
}

/// Updates element i; `states` are pointers to the first element of each.
template <typename Rule, int form, typename T>
HFTA_BOTH void update_element(T& weight, T gradient, T* first, T* second, T* third, std::size_t i,
                              const typename Rule::template Numbers<T>& numbers) {
  static_assert(rules::kStates<Rule> >= 1 && rules::kStates<Rule> <= kMostStates);
  if constexpr (rules::kStates<Rule> == 1) {
    Rule::template update<form>(weight, gradient, first[i], numbers);
  } else if constexpr (rules::kStates<Rule> == 2) {
    Rule::template update<form>(weight, gradient, first[i], second[i], numbers);
  } else {
    Rule::template update<form>(weight, gradient, first[i], second[i], third[i], numbers);
  }
}

/// torch.nn.utils.clip_grad_norm_'s factor for a gradient whose elements' squares sum to `squares`. A NaN norm makes
/// the slot's own update NaN, as in PyTorch.
HFTA_BOTH double clip_factor(double clip_norm, double squares) {
  if (std::isnan(squares)) return squares;
  const double factor = clip_norm / (std::sqrt(squares) + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

}  // namespace hfta::fusion
