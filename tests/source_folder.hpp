#pragma once
/// Where the repository lies. A function, not a macro: so only one object file differs between two clones.

#include <filesystem>

namespace hfta::testing {

const std::filesystem::path& source_folder();

}  // namespace hfta::testing
