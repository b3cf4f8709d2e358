#pragma once
/// Cross-validation: training data in parts. Internal to fusion/data.

#include <cstdint>
#include <string>
#include <vector>

#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// The part that each of `size` samples is in, 0 to `count` - 1: a function of the arguments alone. -1: in none.
///
/// Without groups, the samples are put in an order by a permutation of Stream::kSplit, item 1, under `seed`, and dealt
/// to the parts in turn. With `classes` (one per sample, else empty) they are dealt class after class, in ascending
/// order, so that the parts' shares of each class differ by at most one. The parts are equally large: size mod count
/// samples are in none, and are trained on by every fold. These are the last ones of that order, or with `classes` one
/// after another the last one of the class that has most of them left.
///
/// With `groups` (one per sample, else empty), whole groups are dealt, the largest first, ties in the order of their
/// first sample in that permutation. Each goes to the part that has the least of what the group brings: the sum over
/// classes of (samples of the part) x (samples of the group) / (samples of all)^2, ties to the part with the
/// fewest samples, then to the lower one. Without classes that is the smallest part. So no part is empty that need not
/// be.
[[nodiscard]] std::vector<int> deal_folds(std::int64_t size, int count, const std::vector<std::int64_t>& classes,
                                          const std::vector<std::int64_t>& groups, std::uint64_t seed);

/// Training and validation data of one fold, each in the file's order. `groups`: one number per sample; empty where the
/// source names none. Throws Error{kConfig} for fewer samples, or groups, than folds, for windows over one sequence,
/// and if `stratified` finds no class for each sample.
[[nodiscard]] Splits split_fold(const Dataset& data, const FoldSource& source, const std::vector<std::int64_t>& groups,
                                std::uint64_t seed, const std::string& place);

/// The numbers of a field with one of them per sample, as integers.
[[nodiscard]] std::vector<std::int64_t> integers_of(const Field& field, std::int64_t size);

}  // namespace hfta::fusion
