#pragma once
/// Warnings that a user should read before training an exported model.

#include <string>
#include <vector>

#include "fusion/pt2/translate.hpp"

namespace hfta::fusion::pt2 {

/// One line each: nothing trains as in training mode, random ops that evaluation replaces by their mean, functions
/// whose own backward is not in the file.
[[nodiscard]] std::vector<std::string> warnings_of(const Translation& model);

}  // namespace hfta::fusion::pt2
