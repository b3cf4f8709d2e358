#pragma once
/// A search::History as JSON: the form in which a study's record keeps the earlier trials that it was begun with.

#include <nlohmann/json_fwd.hpp>

#include "search/history.hpp"

namespace hfta::engine {

/// A list of {params: [[name, value], ...], values: [...], value, state}, and `others` of a study of several
/// objectives. Numbers are as trials::number_json() has them; a NaN `value` is null, and read back as none.
[[nodiscard]] nlohmann::json history_json(const search::History& history);
/// Throws nlohmann::json::exception for another form.
[[nodiscard]] search::History history_from(const nlohmann::json& list);

}  // namespace hfta::engine
