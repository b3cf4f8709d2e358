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
