#pragma once
/// Configurations as vectors of numbers, as models of samplers see them. Internal to samplers.

#include <Eigen/Core>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/unit_scale.hpp"
#include "trials/space.hpp"

namespace hfta::search {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

/// One parameter that has more than one value.
struct Dimension {
  std::size_t parameter = 0;
  std::optional<UnitScale> scale;           ///< Unset: categories, numbered from 0.
  std::vector<trials::ParamValue> choices;  ///< The categories.
  /// All numbers that stand for a value, where these are few: of a category its index, of a step its middle on the
  /// scale. Empty: many values, which are searched as if they were a continuum.
  std::vector<double> options;
  bool rounds = false;  ///< Values are steps.

  [[nodiscard]] bool is_category() const { return !scale; }
  [[nodiscard]] bool is_continuous() const { return scale && !rounds; }
};

/// Numbers of some dimensions, by dimension.
using GivenNumbers = std::vector<std::pair<Eigen::Index, double>>;

/// Value type. Vectors have a number for each dimension: of a number its place on the unit scale
/// (search/unit_scale.hpp, a step's is its middle), of a category its index.
class Inputs {
 public:
  explicit Inputs(const trials::Space& space);

  [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
  [[nodiscard]] Eigen::Index size() const { return static_cast<Eigen::Index>(dimensions_.size()); }
  /// REQUIRES a value for each parameter of the space, in its order. Values that a distribution cannot give count as
  /// the nearest, words as the first category.
  [[nodiscard]] Vector vector_of(const trials::Params& params) const;
  [[nodiscard]] trials::Params params_at(const Vector& x) const;
  /// `x` with all numbers within the scale and on their steps.
  [[nodiscard]] Vector rounded(Vector x) const;
  /// The numbers that stand for the values of `given`, by dimension. What no dimension can have is left out.
  [[nodiscard]] GivenNumbers numbers_of(const trials::Params& given) const;
  /// The vector for a point of the unit cube; categories have equal shares.
  [[nodiscard]] Vector from_cube(const std::vector<double>& point) const;

 private:
  trials::Space space_;
  std::vector<Dimension> dimensions_;
};

}  // namespace hfta::search
