#pragma once
/// Optimizers as data: kinds, numbers, states, defaults. Update rules are in fusion/optimizers/rules. Without torch;
/// C++17 (nvcc).
///
/// Names, defaults and update rules are torch.optim's (2.11); lion is that of Chen et al., "Symbolic Discovery of
/// Optimization Algorithms" (2023), Algorithm 2.

#include <limits>
#include <variant>
#include <vector>

namespace hfta::fusion {

enum class OptimizerKind {
  kSgd,
  kAdam,
  kAdamW,
  kRmsprop,
  kAdagrad,
  kAdadelta,
  kAdamax,
  kNadam,
  kRadam,
  kLion,
  kRprop,
  kLast = kRprop  ///< Keep it the last one: a kind without a rule then does not compile (rules.hpp).
};

/// Numbers of every optimizer; each kind reads its own (OptimizerInfo::hypers). All per slot.
struct OptimizerHyper {
  double lr = 1e-3;
  double weight_decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double alpha = 0.99;
  bool centered = false;
  double rho = 0.9;
  double lr_decay = 0, initial_accumulator_value = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  double eta_minus = 0.5, eta_plus = 1.2;
  double step_size_min = 1e-6, step_size_max = 50;
};

/// One field of OptimizerHyper.
struct HyperField {
  const char* name;
  std::variant<double OptimizerHyper::*, bool OptimizerHyper::*> field;
  const char* sentence;  ///< Description of the field, for a reference page.
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
  bool below = false;  ///< `most` itself is excluded.
};

/// All fields, in the order of a reference page.
[[nodiscard]] inline const std::vector<HyperField>& hyper_fields() {
  using H = OptimizerHyper;
  static const std::vector<HyperField> fields = {
      {"lr", &H::lr, "Learning rate."},
      {"weight_decay", &H::weight_decay, "Weight decay; of adamw and lion decoupled from the gradient."},
      {"momentum", &H::momentum, "Momentum."},
      {"dampening", &H::dampening, "Dampening of momentum.", -std::numeric_limits<double>::infinity()},
      {"nesterov", &H::nesterov, "Nesterov momentum; wants momentum above 0 and no dampening."},
      {"beta1", &H::beta1, "Decay of the running mean of gradients.", 0, 1, true},
      {"beta2", &H::beta2, "Decay of the running mean of their squares (adamax: of their largest).", 0, 1, true},
      {"eps", &H::eps, "Added to the denominator."},
      {"alpha", &H::alpha, "Decay of the running mean of squares.", 0, 1},
      {"centered", &H::centered, "Divides by the deviation from the running mean of gradients."},
      {"rho", &H::rho, "Decay of both running means.", 0, 1},
      {"lr_decay", &H::lr_decay, "Step t has the rate lr / (1 + (t - 1) lr_decay)."},
      {"initial_accumulator_value", &H::initial_accumulator_value, "What the sum of squares begins with."},
      {"momentum_decay", &H::momentum_decay, "How fast the momentum rises to beta1."},
      {"decoupled_weight_decay", &H::decoupled_weight_decay, "Weight decay as adamw's."},
      {"eta_minus", &H::eta_minus, "Factor on an element's step where its gradient has changed sign.", 0, 1, true},
      {"eta_plus", &H::eta_plus, "Factor on an element's step where its gradient has kept its sign.", 1},
      {"step_size_min", &H::step_size_min, "The smallest step of an element."},
      {"step_size_max", &H::step_size_max, "The largest step of an element."},
  };
  return fields;
}

/// A field that a kind reads, and its default there; 0 or 1 for a flag.
struct HyperDefault {
  const char* name;
  double value;
};

struct OptimizerInfo {
  OptimizerKind kind;
  const char* name;                       ///< "sgd", "adam"
  std::vector<const char*> states = {};   ///< Tensors of a parameter's shape, as torch.optim's state_dict names them.
  std::vector<HyperDefault> hypers = {};  ///< Names are hyper_fields()'s.
};

/// Every kind, in the enumeration's order.
[[nodiscard]] const std::vector<OptimizerInfo>& optimizers();
[[nodiscard]] const OptimizerInfo& info_of(OptimizerKind kind);
[[nodiscard]] inline const char* name_of(OptimizerKind kind) { return info_of(kind).name; }

/// Whether a weight that is zero, with gradients that are all zero, stays zero, to the bit: then the rest of a padded
/// weight (Padding) takes part in nothing. Each optimizer here updates an element by that element's gradient and state
/// alone; one that reads others (rows, means, norms of a tensor) would have to answer false.
[[nodiscard]] bool keeps_zeros(OptimizerKind kind, const OptimizerHyper& hyper);

/// torch.optim's defaults for that kind (lion's: its paper's).
[[nodiscard]] OptimizerHyper default_hyper(OptimizerKind kind);

}  // namespace hfta::fusion
