#pragma once
/// Checks that an archive is of a kind and version that is read.

#include <string>

#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/json.hpp"

namespace hfta::fusion::pt2 {

/// Name of the model that the archive holds: the graph is models/NAME.json. Throws Error{kConfig}: archives of another
/// kind, each with what to do instead.
[[nodiscard]] std::string model_name(const Archive& archive);

/// Throws Error{kConfig} unless the schema's major version is the one that is read; returns torch's version.
[[nodiscard]] std::string check_schema(const Reader& program);

}  // namespace hfta::fusion::pt2
