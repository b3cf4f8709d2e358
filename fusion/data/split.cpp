#include "fusion/data/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.hpp"
#include "base/shuffle.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/sources.hpp"

namespace hfta::fusion {
namespace {

// Numbers in memory are copied; for numbers in a file only the chosen rows are noted.
Field rows_of(const Field& field, const std::vector<std::int64_t>& indices) {
  Field out = field;
  if (field.data.memory() == nullptr) {
    auto chosen = indices;
    if (field.rows.chosen != nullptr) {
      for (std::int64_t& index : chosen) index = (*field.rows.chosen)[static_cast<std::size_t>(index)];
    }
    out.rows.chosen = std::make_shared<const std::vector<std::int64_t>>(std::move(chosen));
    return out;
  }
  const std::size_t sample = static_cast<std::size_t>(field.stride()) * field.data.type().width;
  auto copies = std::make_shared<MemorySource>(indices.size() * sample);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    field.gather_stored(indices[i], indices[i] + 1, copies->bytes().data() + i * sample);
  }
  const auto size = static_cast<std::int64_t>(indices.size()) * field.stride();
  out.data = Numbers(std::move(copies), 0, size, field.data.type(), field.dtype());
  out.rows = {};
  return out;
}

std::int64_t part_size(std::int64_t n, std::optional<double> fraction, const char* name, const std::string& place) {
  if (!fraction) return 0;
  if (!(*fraction > 0 && *fraction < 1)) {
    fail_at(place, fmt::format("{}: found {}, wanted a fraction between 0 and 1", name, *fraction));
  }
  const std::int64_t size = std::llround(static_cast<double>(n) * *fraction);
  if (size == 0) {
    fail_at(place, fmt::format("{}: found no samples in {} of {}, wanted at least one", name, *fraction, n));
  }
  return size;
}

// The samples [begin, end), which are not copied.
Dataset part_of(const Dataset& data, std::int64_t begin, std::int64_t end) {
  Dataset out = data;
  const auto cut = [&](Field& field) {
    if (field.rows.step == 0) field.rows.step = field.stride();
    field.rows.first += begin * field.rows.step;
  };
  for (Field& input : out.inputs) cut(input);
  if (data.labelled) cut(out.target);
  out.size = end - begin;
  return out;
}

// Training, validation and test one behind another. No number is in two of them: the windows at the end of a part that
// reach into the next are left out.
Splits split_sequence(const Dataset& data, std::int64_t validation, std::int64_t test, const std::string& place) {
  const std::int64_t left_out = data.overlap - 1;
  const std::int64_t test_begin = data.size - test;
  const std::int64_t validation_begin = test_begin - validation;
  const std::int64_t train_end = validation_begin - left_out;
  const std::int64_t validation_end = test > 0 ? test_begin - left_out : test_begin;
  if (train_end < 1 || (validation > 0 && validation_end <= validation_begin)) {
    fail_at(place, fmt::format("found {} windows, each sharing tokens with the {} behind it, wanted more for training, "
                               "{} for validation and {} for test",
                               data.size, left_out, validation, test));
  }
  Splits splits{part_of(data, 0, train_end), {}, {}};
  if (validation > 0) splits.validation = part_of(data, validation_begin, validation_end);
  if (test > 0) splits.test = part_of(data, test_begin, data.size);
  return splits;
}

// Puts the samples of whole groups first, about `wanted` of them, and gives their number.
std::int64_t put_groups_first(std::vector<std::int64_t>& order, const std::vector<std::int64_t>& groups,
                              std::int64_t wanted) {
  const auto group_of = [&](std::int64_t sample) { return groups.at(static_cast<std::size_t>(sample)); };
  std::map<std::int64_t, std::int64_t> sizes;
  for (const std::int64_t group : groups) ++sizes[group];
  std::set<std::int64_t> seen, taken;
  std::int64_t size = 0;
  const auto take = [&](std::int64_t group) {
    taken.insert(group);
    size += sizes[group];
  };
  for (const std::int64_t sample : order) {
    const std::int64_t group = group_of(sample);
    const std::int64_t with = size + sizes[group];
    const bool leaves_some = with < std::ssize(order);
    if (seen.insert(group).second && leaves_some && std::abs(with - wanted) < std::abs(size - wanted)) take(group);
  }
  if (taken.empty()) take(group_of(order.front()));
  std::stable_partition(order.begin(), order.end(),
                        [&](std::int64_t sample) { return taken.contains(group_of(sample)); });
  return size;
}

}  // namespace

std::vector<std::int64_t> permutation(std::int64_t size, std::uint64_t seed, std::uint64_t item) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  CountedRandom random(seed, Stream::kSplit, item);
  shuffle(order, random);
  return order;
}

Dataset subset(const Dataset& data, const std::vector<std::int64_t>& indices) {
  Dataset out;
  for (const Field& input : data.inputs) out.inputs.push_back(rows_of(input, indices));
  out.labelled = data.labelled;
  if (data.labelled) out.target = rows_of(data.target, indices);
  out.size = static_cast<std::int64_t>(indices.size());
  return out;
}

Splits split(Dataset data, std::optional<double> validation, std::optional<double> test, std::uint64_t seed,
             const std::string& place, const std::vector<std::int64_t>& groups) {
  const std::int64_t n = data.size;
  std::int64_t test_size = part_size(n, test, "test", place);
  const std::int64_t validation_size = part_size(n, validation, "validation", place);
  std::vector<std::int64_t> order;
  if (test_size > 0 && !groups.empty()) {
    order = permutation(n, seed, 0);
    test_size = put_groups_first(order, groups, test_size);
    if (test_size == n) fail_at(place, "folds.groups: found one group, wanted at least two: test takes whole ones");
  }
  if (test_size + validation_size >= n) {
    fail_at(place, fmt::format("found {} samples of which validation and test take {}, wanted some for training", n,
                               test_size + validation_size));
  }
  if (test_size + validation_size == 0) return {std::move(data), {}, {}};
  if (data.overlap > 0) return split_sequence(data, validation_size, test_size, place);
  if (order.empty()) order = permutation(n, seed, 0);
  const auto part = [&](std::int64_t from, std::int64_t size) {
    std::vector<std::int64_t> indices(order.begin() + from, order.begin() + from + size);
    std::sort(indices.begin(), indices.end());
    return subset(data, indices);
  };
  Splits splits;
  if (test_size > 0) splits.test = part(0, test_size);
  if (validation_size > 0) splits.validation = part(test_size, validation_size);
  splits.train = part(test_size + validation_size, n - test_size - validation_size);
  return splits;
}

}  // namespace hfta::fusion
