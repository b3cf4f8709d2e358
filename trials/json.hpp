#pragma once
/// Parameters' values, numbers and objectives as JSON: the forms that stores, events and reports share.

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "trials/trial.hpp"

namespace hfta::trials {

/// null, true or false, a number or a word. Numbers keep their type (1 and 1.0 differ); one that is not finite stays as
/// it is in the value, and is null in its text.
[[nodiscard]] nlohmann::json value_json(const ParamValue& value);

/// {"lr": 0.1, "hidden": 64}, in the order of the parameters.
[[nodiscard]] nlohmann::ordered_json values_by_name(const Params& params);

/// A number to be read back. JSON has no words for those that are not finite: they are {"float": "nan"}, "inf" and
/// "-inf", an object that cannot be mistaken for a parameter's value.
[[nodiscard]] nlohmann::json number_json(double value);
/// The number that such an object stands for; nullopt for JSON of another form. Throws Error{kStorage} for another
/// word.
[[nodiscard]] std::optional<double> non_finite_from(const nlohmann::json& json);
/// Reads what number_json() gives, and what histories had before: "Infinity", "-Infinity", and null for NaN. Throws
/// as non_finite_from(), and nlohmann::json::exception for another form.
[[nodiscard]] double number_from(const nlohmann::json& json);

/// [{"metric": "val_accuracy", "direction": "maximize"}, ...]
[[nodiscard]] nlohmann::ordered_json objectives_json(const Objectives& objectives);

}  // namespace hfta::trials
