#include "fusion/data/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "fusion/data/array_file.hpp"

namespace hfta::fusion {
namespace {

Field rows_of(const Field& field, const std::vector<std::int64_t>& indices) {
  Field out{field.name, field.shape, {}};
  const std::int64_t stride = field.stride();
  std::visit(
      [&](const auto& from) {
        std::decay_t<decltype(from)> to;
        to.reserve(indices.size() * static_cast<std::size_t>(stride));
        for (const std::int64_t i : indices) {
          const auto row = from.begin() + i * stride;
          to.insert(to.end(), row, row + stride);
        }
        out.data = std::move(to);
      },
      field.data);
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

}  // namespace

Dataset subset(const Dataset& data, const std::vector<std::int64_t>& indices) {
  Dataset out;
  for (const Field& input : data.inputs) out.inputs.push_back(rows_of(input, indices));
  out.target = rows_of(data.target, indices);
  out.size = static_cast<std::int64_t>(indices.size());
  return out;
}

Splits split(Dataset data, std::optional<double> validation, std::optional<double> test, std::uint64_t seed,
             const std::string& place) {
  const std::int64_t n = data.size;
  const std::int64_t test_size = part_size(n, test, "test", place);
  const std::int64_t validation_size = part_size(n, validation, "validation", place);
  if (test_size + validation_size >= n) {
    fail_at(place, fmt::format("found {} samples of which validation and test take {}, wanted some for training", n,
                               test_size + validation_size));
  }
  if (test_size + validation_size == 0) return {std::move(data), {}, {}};

  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  CountedRandom random(seed, Stream::kSplit, 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);

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
