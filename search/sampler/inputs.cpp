#include "search/sampler/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "search/choices.hpp"

namespace hfta::search {
namespace {

constexpr std::int64_t kFew = 64;  // values that are all tried, one by one

Dimension categories(const trials::Distribution& distribution, std::size_t parameter) {
  Dimension dimension{parameter, std::nullopt, distribution.values, {}, false};
  for (std::size_t i = 0; i < distribution.values.size(); ++i) {
    const bool possible = distribution.probabilities.empty() || distribution.probabilities[i] > 0;
    if (possible) dimension.options.push_back(static_cast<double>(i));
  }
  return dimension;
}

Dimension numbers(const UnitScale& scale, const std::optional<Choices>& choices, std::size_t parameter) {
  Dimension dimension{parameter, scale, {}, {}, !scale.part_of(scale.at(0.5)).is_point()};
  if (!choices || choices->count() > kFew) return dimension;
  for (std::int64_t i = 0; i < choices->count(); ++i) {
    if (choices->weight(i) > 0) dimension.options.push_back(scale.part_of(choices->value(i)).middle());
  }
  return dimension;
}

// The number that stands for a value; nullopt if it is none of the categories.
std::optional<double> number_of(const Dimension& dimension, const trials::ParamValue& value) {
  if (dimension.scale) return dimension.scale->part_of(value).middle();
  const auto found = std::find(dimension.choices.begin(), dimension.choices.end(), value);
  if (found == dimension.choices.end()) return std::nullopt;
  return static_cast<double>(found - dimension.choices.begin());
}

double rounded_in(const Dimension& dimension, double x) {
  if (dimension.is_category()) return x;
  return dimension.scale->part_of(dimension.scale->at(x)).middle();
}

}  // namespace

Inputs::Inputs(const trials::Space& space) : space_(space) {
  for (std::size_t i = 0; i < space.size(); ++i) {
    const trials::Distribution& distribution = space[i].distribution;
    const auto choices = Choices::of(distribution);
    if (choices && choices->count() == 1) continue;
    const auto scale = UnitScale::of(distribution);
    Dimension dimension = scale ? numbers(*scale, choices, i) : categories(distribution, i);
    if (dimension.options.size() != 1) dimensions_.push_back(std::move(dimension));
  }
}

Vector Inputs::vector_of(const trials::Params& params) const {
  Vector x(size());
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[static_cast<std::size_t>(i)];
    x[i] = number_of(dimension, params[dimension.parameter].second).value_or(0);
  }
  return x;
}

GivenNumbers Inputs::numbers_of(const trials::Params& given) const {
  GivenNumbers numbers;
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[static_cast<std::size_t>(i)];
    const trials::ParamValue* value = trials::find_value(given, space_[dimension.parameter].name);
    const std::optional<double> number = value != nullptr ? number_of(dimension, *value) : std::nullopt;
    if (number) numbers.emplace_back(i, *number);
  }
  return numbers;
}

trials::Params Inputs::params_at(const Vector& x) const {
  trials::Params params;
  for (const trials::Parameter& parameter : space_) {
    const trials::Distribution& d = parameter.distribution;
    // A parameter's only possible value; parameters with more values are set below.
    const auto choices = Choices::of(d);
    std::int64_t i = 0;
    while (choices && i + 1 < choices->count() && choices->weight(i) <= 0) ++i;
    params.emplace_back(parameter.name, choices ? choices->value(i) : trials::ParamValue());
  }
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[static_cast<std::size_t>(i)];
    params[dimension.parameter].second =
        dimension.scale ? dimension.scale->at(x[i]) : dimension.choices[static_cast<std::size_t>(x[i])];
  }
  return params;
}

Vector Inputs::rounded(Vector x) const {
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[static_cast<std::size_t>(i)];
    if (dimension.is_category()) continue;
    x[i] = std::clamp(x[i], 0.0, 1.0);
    if (dimension.rounds) x[i] = rounded_in(dimension, x[i]);
  }
  return x;
}

Vector Inputs::from_cube(const std::vector<double>& point) const {
  Vector x(size());
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Dimension& dimension = dimensions_[static_cast<std::size_t>(i)];
    const double u = point[static_cast<std::size_t>(i)];
    if (dimension.is_category()) {
      const auto index = static_cast<std::size_t>(u * static_cast<double>(dimension.options.size()));
      x[i] = dimension.options[std::min(index, dimension.options.size() - 1)];
    } else {
      x[i] = dimension.rounds ? rounded_in(dimension, u) : u;
    }
  }
  return x;
}

}  // namespace hfta::search
