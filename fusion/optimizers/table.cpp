#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "fusion/optimizers/rules.hpp"

namespace hfta::fusion {
namespace {

template <typename Rule>
OptimizerInfo info() {
  return {Rule::kind,
          Rule::name,
          {std::begin(Rule::states), std::end(Rule::states)},
          {std::begin(Rule::hypers), std::end(Rule::hypers)}};
}

template <std::size_t... index>
std::vector<OptimizerInfo> infos(std::index_sequence<index...>) {
  return {info<std::tuple_element_t<index, rules::Table>>()...};
}

}  // namespace

const std::vector<OptimizerInfo>& optimizers() {
  static const std::vector<OptimizerInfo> all = infos(std::make_index_sequence<rules::kCount>());
  return all;
}

const OptimizerInfo& info_of(OptimizerKind kind) { return optimizers().at(static_cast<std::size_t>(kind)); }

bool keeps_zeros(OptimizerKind kind, const OptimizerHyper& hyper) {
  constexpr int kSteps = 8;  // radam's first steps are of another form
  bool kept = true;
  with_rule(kind, [&](auto rule) {
    using Rule = decltype(rule);
    double weight = 0, states[kMostStates] = {};
    for (int step = 1; step <= kSteps; ++step) {
      SlotStep slot;
      slot.updates = true;
      slot.hyper = hyper;
      slot.step = step;
      const auto numbers = numbers_of<Rule, double>(slot);
      with_form<Rule, double>(numbers, [&](auto form) {
        update_element<Rule, form.value>(weight, 0.0, &states[0], &states[1], &states[2], 0, numbers);
      });
      kept = kept && weight == 0;
    }
  });
  return kept;
}

OptimizerHyper default_hyper(OptimizerKind kind) {
  OptimizerHyper hyper;
  for (const HyperDefault& given : info_of(kind).hypers) {
    for (const HyperField& known : hyper_fields()) {
      if (std::string_view(known.name) != given.name) continue;
      std::visit([&](auto field) { hyper.*field = static_cast<std::decay_t<decltype(hyper.*field)>>(given.value); },
                 known.field);
    }
  }
  return hyper;
}

}  // namespace hfta::fusion
