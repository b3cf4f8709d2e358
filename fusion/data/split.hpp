#pragma once
/// Taking validation and test data out of one set of samples. Internal to fusion/data.

#include <cstdint>
#include <optional>
#include <string>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// The samples at `indices`, in that order: copies of what lies in memory.
[[nodiscard]] Dataset subset(const Dataset& data, const std::vector<std::int64_t>& indices);

/// Splits by a permutation of Stream::kSplit under `seed`: first round(n * test) samples for test, then
/// round(n * validation), the rest for training; each part keeps the file's order. The test samples do not depend on
/// the validation fraction. Windows over one sequence (Dataset::overlap) are split in the sequence's order: training,
/// validation, test, and those that reach from one part into the next are left out. Throws Error{kConfig} if a fraction
/// is not within 0..1 or a part is empty.
[[nodiscard]] Splits split(Dataset data, std::optional<double> validation, std::optional<double> test,
                           std::uint64_t seed, const std::string& place);

}  // namespace hfta::fusion
