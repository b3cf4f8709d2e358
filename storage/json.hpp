#pragma once
/// Our plain data as JSON text: numbers that are read back equal what was written. Private to storage/.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.hpp"
#include "trials/space.hpp"

namespace hfta::storage {

/// Numbers keep their type (1 and 1.0 differ). NaN and infinities become Python's words NaN, Infinity, -Infinity in
/// the text, as Python's json module writes and reads them.
[[nodiscard]] nlohmann::json param_to_json(const trials::ParamValue& value);
/// Lists and maps, which Optuna takes for choices, become their JSON text.
[[nodiscard]] trials::ParamValue param_from_json(const nlohmann::json& json);

[[nodiscard]] std::string dump(const nlohmann::json& json);
/// `what` names the text in the message of the Error{kStorage} that malformed text gives.
[[nodiscard]] nlohmann::json parse(std::string_view text, const std::string& what);

/// The space as JSON, without conditions (Parameter::when): the study's config has them.
[[nodiscard]] std::string space_to_json(const trials::Space& space);
[[nodiscard]] trials::Space space_from_json(std::string_view text);

[[nodiscard]] std::string ints_to_json(const std::vector<int>& numbers);
[[nodiscard]] std::vector<int> ints_from_json(std::string_view text);

/// {"seconds": 3.5, "ended_by": "its target"}
[[nodiscard]] std::string progress_to_json(const Progress& progress);
/// Throws Error{kStorage} for another form, and for seconds below 0.
[[nodiscard]] Progress progress_from_json(std::string_view text);

}  // namespace hfta::storage
