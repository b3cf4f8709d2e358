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
///
/// With `groups` (one number per sample, else empty), the test data are whole groups: in the order of their first
/// sample in that permutation, each that brings the number of samples nearer to round(n * test); if none does, the
/// first.
[[nodiscard]] Splits split(Dataset data, std::optional<double> validation, std::optional<double> test,
                           std::uint64_t seed, const std::string& place, const std::vector<std::int64_t>& groups = {});

/// The samples 0 to size - 1 in a random order: Stream::kSplit, `item`, under `seed`.
[[nodiscard]] std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed, std::uint64_t item);

}  // namespace hfta::fusion
