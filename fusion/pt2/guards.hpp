#pragma once
/// Assumptions about the sizes of inputs that torch.export made while it recorded the model.

#include <string>
#include <vector>

#include "fusion/pt2/batch.hpp"

namespace hfta::fusion::pt2 {

/// The program's guards that say something of the batch, in terms of N, "(N % 2) == 0" (graph/condition.hpp): a model
/// that asks for its sizes (`if n % 2 == 0:`) has other branches, which are not in the file. Throws Error{kConfig}:
/// ones that nothing is known of.
[[nodiscard]] std::vector<std::string> guards_from(const Reader& program, const Batch& batch);

}  // namespace hfta::fusion::pt2
