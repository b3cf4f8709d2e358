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

const std::vector<HyperField>& hyper_fields() {
  using Hyper = OptimizerHyper;
  static const std::vector<HyperField> fields = {
      {"lr", &Hyper::lr, "Learning rate."},
      {"weight_decay", &Hyper::weight_decay, "Weight decay; of adamw and lion decoupled from the gradient."},
      {"momentum", &Hyper::momentum, "Momentum."},
      {.name = "dampening",
       .field = &Hyper::dampening,
       .sentence = "Dampening of momentum.",
       .least = -std::numeric_limits<double>::infinity()},
      {"nesterov", &Hyper::nesterov, "Nesterov momentum; wants momentum above 0 and no dampening."},
      {"beta1", &Hyper::beta1, "Decay of the running mean of gradients.", 0, 1, true},
      {"beta2", &Hyper::beta2, "Decay of the running mean of their squares (adamax: of their largest).", 0, 1, true},
      {"eps", &Hyper::eps, "Added to the denominator."},
      {"alpha", &Hyper::alpha, "Decay of the running mean of squares.", 0, 1},
      {"centered", &Hyper::centered, "Divides by the deviation from the running mean of gradients."},
      {"rho", &Hyper::rho, "Decay of both running means.", 0, 1},
      {"lr_decay", &Hyper::lr_decay, "Step t has the rate lr / (1 + (t - 1) lr_decay)."},
      {"initial_accumulator_value", &Hyper::initial_accumulator_value, "What the sum of squares begins with."},
      {"momentum_decay", &Hyper::momentum_decay, "How fast the momentum rises to beta1."},
      {"decoupled_weight_decay", &Hyper::decoupled_weight_decay, "Weight decay as adamw's."},
  };
  return fields;
}

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
