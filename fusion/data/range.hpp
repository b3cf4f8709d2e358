#pragma once
/// Whether a model can hold the numbers of its data.

#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// Throws Error{kConfig} that names the place of `source`, whose numbers these are, for a number that a model of
/// float32 would take for an infinite one, which makes every loss NaN. `inputs`: the types of the model's inputs, in
/// order; those beyond its end, and targets that are numbers, are taken as `dtype`.
void check_range(const Splits& splits, const DataSource& source, const std::vector<DType>& inputs, DType dtype);

}  // namespace hfta::fusion
