#pragma once
/// The search space as plain data: named parameters with distributions, in W&B-sweep vocabulary.
///
/// Distribution names and arguments are those of docs.wandb.ai/models/sweeps/sweep-config-keys. `log_uniform` takes
/// min/max as natural exponents; `log_uniform_values` takes the values themselves; q_* round to multiples of q.

#include <optional>
#include <string>
#include <vector>

#include "trials/trial.hpp"

namespace hfta::trials {

enum class DistributionKind {
  kConstant,
  kCategorical,  ///< `values`, with optional `probabilities`.
  kIntUniform,   ///< Integers min..max inclusive.
  kUniform,
  kQUniform,
  kLogUniform,  ///< exp(uniform(min, max)).
  kQLogUniform,
  kLogUniformValues,  ///< log-uniform between the values min and max.
  kQLogUniformValues,
  kInvLogUniform,        ///< 1 / log_uniform.
  kInvLogUniformValues,  ///< 1 / log_uniform_values(1/max, 1/min).
  kNormal,               ///< mu, sigma.
  kQNormal,
  kLogNormal,
  kQLogNormal,
};

/// "uniform", "log_uniform_values", ...: the config's word for it.
[[nodiscard]] const char* name_of(DistributionKind kind);
/// All of them, for messages.
[[nodiscard]] const std::vector<std::string>& distribution_names();
/// The kind of that name; nullopt for another word.
[[nodiscard]] std::optional<DistributionKind> distribution_from(const std::string& name);

/// Where a parameter's values come from. Fields that its kind does not use keep their defaults.
struct Distribution {
  DistributionKind kind = DistributionKind::kConstant;
  std::vector<ParamValue> values;     ///< kConstant (one) and kCategorical.
  std::vector<double> probabilities;  ///< kCategorical: empty means equal.
  double min = 0, max = 1;            ///< As written in the config.
  double mu = 0, sigma = 1;
  double q = 1;
  bool integer = false;  ///< q_* with whole min and q: values are given as integers.
};

struct Parameter {
  std::string name;
  Distribution distribution;
};

using Space = std::vector<Parameter>;

}  // namespace hfta::trials
