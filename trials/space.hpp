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

/// What is known of a kind of distribution, beside its formula.
struct DistributionInfo {
  /// The fields of Distribution that it reads: one value; values and probabilities; min and max; mu and sigma.
  enum class Fields { kValue, kValues, kRange, kNormal };

  DistributionKind kind;
  const char* name;  ///< The config's word for it: "uniform", "log_uniform_values", ...
  Fields fields;
  bool logarithmic = false;  ///< What is drawn uniformly or normally is the logarithm of its values, or of 1 / them.
  bool quantized = false;    ///< It rounds to multiples of `q`, which it reads too.
};
/// All kinds, in the order of DistributionKind.
[[nodiscard]] const std::vector<DistributionInfo>& distributions();
[[nodiscard]] const DistributionInfo& info_of(DistributionKind kind);

[[nodiscard]] bool is_bounded(DistributionKind kind);  ///< It reads min and max.
[[nodiscard]] bool is_normal(DistributionKind kind);   ///< It reads mu and sigma.
[[nodiscard]] bool is_logarithmic(DistributionKind kind);
[[nodiscard]] bool is_quantized(DistributionKind kind);

/// DistributionInfo::name.
[[nodiscard]] const char* name_of(DistributionKind kind);
/// All of them, for messages.
[[nodiscard]] const std::vector<std::string>& distribution_names();
/// The kind of that name; nullopt for another word.
[[nodiscard]] std::optional<DistributionKind> distribution_from(const std::string& name);

/// The distribution of a parameter's values. Fields that its kind does not use keep their defaults.
struct Distribution {
  DistributionKind kind = DistributionKind::kConstant;
  std::vector<ParamValue> values = {};     ///< kConstant (one) and kCategorical.
  std::vector<double> probabilities = {};  ///< kCategorical: empty means equal.
  double min = 0, max = 1;                 ///< Bounds, as written in the config.
  double mu = 0, sigma = 1;
  double q = 1;
  bool integer = false;  ///< q_* with whole min and q: values are given as integers.
};

/// A condition: holds where the parameter of that name applies and has one of these values.
struct Condition {
  std::string parameter = {};
  std::vector<ParamValue> values = {};
  bool operator==(const Condition&) const = default;
};

struct Parameter {
  std::string name = {};
  Distribution distribution = {};
  std::vector<Condition> when =
      {};  ///< It applies where all of them hold; a trial lacks a parameter that does not apply.
};

/// Conditions name parameters of the space, and none of them depends on itself, directly or by others.
using Space = std::vector<Parameter>;

/// The parameters of `all` that apply, in the order of the space. `all` may have more, and lack what does not apply.
[[nodiscard]] Params applying(const Space& space, const Params& all);
/// Whether a configuration has exactly the parameters that apply to it, in the order of the space.
[[nodiscard]] bool is_whole(const Space& space, const Params& params);
/// Sets other parameters in `all` so that parameter `name` applies. `all` has a value for every parameter of the space.
void make_apply(const Space& space, const std::string& name, Params& all);
/// Whether any parameter has conditions.
[[nodiscard]] bool is_conditional(const Space& space);
/// The value of a parameter; nullptr: there is none.
[[nodiscard]] const ParamValue* find_value(const Params& params, const std::string& name);

}  // namespace hfta::trials
