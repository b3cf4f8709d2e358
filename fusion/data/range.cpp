#include "fusion/data/range.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "base/text.hpp"
#include "fusion/data/blocks.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/readers.hpp"

namespace hfta::fusion {
namespace {

void check_field(const Field& field, std::int64_t size, DType taken_as, const std::string& place) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (!is_floating(taken_as) || taken_as == DType::kFloat64 || field.dtype() != DType::kFloat64) return;
  for_each_block(field, size, [&]<typename T>(std::span<const T> numbers) {
    for (const T number : numbers) {
      if (std::abs(static_cast<double>(number)) <= kLargest) continue;
      fail_at(place, fmt::format("{}: found {}, wanted numbers that float32 holds; scale them, or train.dtype: float64",
                                 printable(field.name), shortest(static_cast<double>(number))));
    }
  });
}

void check_set(const Dataset& set, const std::vector<DType>& inputs, DType dtype, const std::string& place) {
  for (std::size_t i = 0; i < set.inputs.size(); ++i) {
    check_field(set.inputs[i], set.size, i < inputs.size() ? inputs[i] : dtype, place);
  }
  if (set.labelled) check_field(set.target, set.size, dtype, place);
}

}  // namespace

void check_range(const Splits& splits, const DataSource& source, const std::vector<DType>& inputs, DType dtype) {
  const std::string place = place_of(source);
  check_set(splits.train, inputs, dtype, place);
  if (splits.validation) check_set(*splits.validation, inputs, dtype, place);
  if (splits.test) check_set(*splits.test, inputs, dtype, place);
}

}  // namespace hfta::fusion
