#pragma once
/// Parameters and numbers in Optuna's encoding: distributions as JSON, values as plain numbers or choice indices,
/// non-finite numbers as NULL with a type beside it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trials/space.hpp"

namespace hfta::storage {

/// A distribution in Optuna's terms.
struct OptunaDistribution {
  enum class Kind { kFloat, kInt, kCategorical };
  Kind kind = Kind::kCategorical;
  double low = 0, high = 0;                 ///< kFloat and kInt; whole for kInt.
  double step = 1;                          ///< kInt only: floats are never stepped here (Optuna would move `high`).
  bool log = false;                         ///< Needs low > 0 and, for kInt, step 1.
  std::vector<trials::ParamValue> choices;  ///< kCategorical.
};

/// The nearest Optuna distribution, which contains every value that ours can give. A distribution that Optuna does not
/// have (normal, q_*, 1/x) becomes a bounded Float or Int; a constant becomes one choice.
[[nodiscard]] OptunaDistribution to_optuna(const trials::Distribution& distribution);

/// A row of trial_params, less its names.
struct EncodedParam {
  double value = 0;
  std::string distribution_json;
  bool exact = true;  ///< False if decode() would give another value (an integer beyond 2^53, minus zero).
};

/// Throws Error{kInternal} if the distribution cannot give the value: another type, or not one of the choices. If
/// rounding put a value slightly outside the bounds, the stored bounds are widened to include it.
[[nodiscard]] EncodedParam encode(const OptunaDistribution& distribution, const trials::ParamValue& value);

/// The value that a row of trial_params stands for. Throws Error{kStorage} if it stands for none.
[[nodiscard]] trials::ParamValue decode(const OptunaDistribution& distribution, double value);

/// Reads distribution_json, also that of Optuna's older class names. Throws Error{kStorage}.
[[nodiscard]] OptunaDistribution parse_distribution(const std::string& json);

/// A number that may be NaN or infinite, as two columns.
struct StoredNumber {
  std::optional<double> value;  ///< NULL unless finite.
  const char* type;             ///< FINITE, INF_POS, INF_NEG or NAN.
};
[[nodiscard]] StoredNumber to_columns(double value);
/// Throws Error{kStorage} for another type than those four.
[[nodiscard]] double from_columns(double value, std::string_view type);

/// How Optuna shows an objective whose metric has no name: "value", "value_1", "value_2", ...
[[nodiscard]] std::string unnamed_metric(std::size_t objective);

}  // namespace hfta::storage
